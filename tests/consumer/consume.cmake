# Configures, builds and runs the project in the directory HOW. The variables come
# from CMakeLists.txt beside this file.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(consume build_dir)
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/${HOW} -B ${build_dir} -G ${GENERATOR}
      -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS}
      -DCMAKE_BUILD_TYPE=${BUILD_TYPE} ${ARGN})
  run(${CMAKE_COMMAND} --build ${build_dir} --target consumer)
  run(${build_dir}/consumer)
endfunction()

if(HOW STREQUAL "subdirectory")
  consume(${SCRATCH}/subdirectory -DTESSERA_SOURCE=${TESSERA_SOURCE})
else()
  set(prefix ${SCRATCH}/prefix)
  file(REMOVE_RECURSE ${prefix} ${SCRATCH}/installed ${SCRATCH}/built)
  run(${CMAKE_COMMAND} --install ${TESSERA_BUILD} --prefix ${prefix})
  consume(${SCRATCH}/installed -DCMAKE_PREFIX_PATH=${prefix})
  # The same package, straight from the build tree.
  consume(${SCRATCH}/built -Dtessera_DIR=${TESSERA_BUILD})
endif()
