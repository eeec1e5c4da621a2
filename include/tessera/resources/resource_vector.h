#ifndef TESSERA_RESOURCES_RESOURCE_VECTOR_H_
#define TESSERA_RESOURCES_RESOURCE_VECTOR_H_

// An amount of every resource of a snapshot, in base units (`units.h`).
//
// The dimensions are fixed per snapshot by its `ResourceSpace`; the capacity is
// fixed at `kMaxResources`, so a vector lives on the stack, is trivially
// copyable, and its loops have a constant length. Unused dimensions are zero.
// Components may be negative: a snapshot may state that more is held than a
// node has, and free capacity is then below zero. There is no `operator<`:
// vectors are only partially ordered, see `FitsWithin`.

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera {

inline constexpr int kMaxResources = 16;

// The dimensions every snapshot has. Extended resources and `gpu:MODEL`
// dimensions follow from `kFirstNamedResource` on.
inline constexpr int kCpu = 0;
inline constexpr int kMemory = 1;
inline constexpr int kPods = 2;
inline constexpr int kGpu = 3;
inline constexpr int kGpuMemory = 4;
inline constexpr int kFirstNamedResource = 5;

class ResourceVector {
 public:
  constexpr ResourceVector() = default;

  // The vector with every component equal to `value`.
  static constexpr ResourceVector Filled(int64_t value) {
    ResourceVector v;
    v.amounts_.fill(value);
    return v;
  }

  constexpr int64_t& operator[](int r) { return amounts_[static_cast<size_t>(r)]; }
  constexpr int64_t operator[](int r) const { return amounts_[static_cast<size_t>(r)]; }

  constexpr ResourceVector& operator+=(const ResourceVector& other) {
    for (int r = 0; r < kMaxResources; ++r) (*this)[r] += other[r];
    return *this;
  }
  constexpr ResourceVector& operator-=(const ResourceVector& other) {
    for (int r = 0; r < kMaxResources; ++r) (*this)[r] -= other[r];
    return *this;
  }
  friend constexpr ResourceVector operator+(ResourceVector a, const ResourceVector& b) {
    return a += b;
  }
  friend constexpr ResourceVector operator-(ResourceVector a, const ResourceVector& b) {
    return a -= b;
  }
  // `count` times `v`. The caller keeps the product below `kMaxTotal`.
  friend constexpr ResourceVector operator*(ResourceVector v, int64_t count) {
    for (int r = 0; r < kMaxResources; ++r) v[r] *= count;
    return v;
  }
  friend constexpr bool operator==(const ResourceVector&, const ResourceVector&) = default;

 private:
  std::array<int64_t, kMaxResources> amounts_{};
};

// True when `a` is at most `b` in every component.
constexpr bool FitsWithin(const ResourceVector& a, const ResourceVector& b) {
  bool fits = true;
  for (int r = 0; r < kMaxResources; ++r) fits &= a[r] <= b[r];
  return fits;
}

}  // namespace tessera

#endif  // TESSERA_RESOURCES_RESOURCE_VECTOR_H_
