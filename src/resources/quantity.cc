#include "tessera/resources/quantity.h"

#include <array>
#include <cctype>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

constexpr int kMaxDecimals = 18;

absl::uint128 PowerOfTen(int exponent) {
  absl::uint128 power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

// The digits of a decimal as `mantissa` x 10^`exponent`.
struct Decimal {
  absl::uint128 mantissa = 0;
  int exponent = 0;
  bool too_long = false;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads digits with at most one point from `text`, advancing it. Zeros at the
// end of the fraction are not kept, so "1.500" has one decimal place.
bool ReadDigits(std::string_view& text, Decimal& decimal) {
  bool any = false, point = false;
  int zeros = 0;
  const auto push = [&decimal](int digit) {
    decimal.too_long |= decimal.mantissa > PowerOfTen(36);
    if (!decimal.too_long) decimal.mantissa = decimal.mantissa * 10 + digit;
  };
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!IsDigit(c)) break;
    any = true;
    if (point && c == '0') {
      ++zeros;
      continue;
    }
    for (; zeros > 0; --zeros, --decimal.exponent) push(0);
    push(c - '0');
    if (point) --decimal.exponent;
  }
  return any;
}

bool ReadExponent(std::string_view& text, Decimal& decimal) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return true;
  std::string_view rest = text.substr(1);
  const bool negative = rest.front() == '-';
  if (rest.front() == '-' || rest.front() == '+') rest.remove_prefix(1);
  if (rest.empty() || !IsDigit(rest.front())) return false;
  int exponent = 0;
  for (; !rest.empty() && IsDigit(rest.front()); rest.remove_prefix(1)) {
    if (exponent < 100000) exponent = exponent * 10 + (rest.front() - '0');
  }
  decimal.exponent += negative ? -exponent : exponent;
  text = rest;
  return true;
}

// The multiplier of a suffix as (binary power, decimal power), or false.
bool ReadSuffix(std::string_view text, int& binary, int& decimal) {
  static constexpr std::array<std::pair<std::string_view, std::pair<int, int>>, 14> kSuffixes = {{
      {"", {0, 0}},
      {"m", {0, -3}},
      {"k", {0, 3}},
      {"M", {0, 6}},
      {"G", {0, 9}},
      {"T", {0, 12}},
      {"P", {0, 15}},
      {"E", {0, 18}},
      {"Ki", {10, 0}},
      {"Mi", {20, 0}},
      {"Gi", {30, 0}},
      {"Ti", {40, 0}},
      {"Pi", {50, 0}},
      {"Ei", {60, 0}},
  }};
  for (const auto& [name, powers] : kSuffixes) {
    if (name != text) continue;
    binary = powers.first;
    decimal = powers.second;
    return true;
  }
  return false;
}

absl::Status TooLarge(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("quantity \"", std::string(text), "\" is too large"));
}

// mantissa x 10^exponent x factor, rounded. The quotient and the remainder of
// the division by the power of ten are scaled apart so that 128 bits suffice.
absl::StatusOr<int64_t> Scale(const Decimal& d, absl::uint128 factor, Rounding rounding,
                              std::string_view text) {
  if (d.mantissa == 0) return 0;
  if (d.too_long || factor > absl::uint128{200} * PowerOfTen(18)) return TooLarge(text);
  const absl::uint128 max = static_cast<absl::uint128>(kMaxTotal);
  if (d.exponent >= 0) {
    if (d.exponent > 19) return TooLarge(text);
    const absl::uint128 unit = factor * PowerOfTen(d.exponent > 16 ? 16 : d.exponent);
    if (unit > max || d.mantissa > max / unit) return TooLarge(text);
    const absl::uint128 value = d.mantissa * unit;
    if (d.exponent > 16 && value > max / PowerOfTen(d.exponent - 16)) return TooLarge(text);
    return static_cast<int64_t>(value *
                                (d.exponent > 16 ? PowerOfTen(d.exponent - 16) : absl::uint128{1}));
  }
  if (-d.exponent > kMaxDecimals) {
    return absl::InvalidArgumentError(
        absl::StrCat("quantity \"", std::string(text), "\" has more than 18 decimal places"));
  }
  const absl::uint128 power = PowerOfTen(-d.exponent);
  const absl::uint128 whole = d.mantissa / power;
  if (whole > max / factor) return TooLarge(text);
  const absl::uint128 part = (d.mantissa % power) * factor;
  const bool up = rounding == Rounding::kUp && part % power != 0;
  const absl::uint128 value = whole * factor + part / power + (up ? 1 : 0);
  if (value > max) return TooLarge(text);
  return static_cast<int64_t>(value);
}

}  // namespace

absl::StatusOr<int64_t> ParseQuantity(std::string_view text, int64_t scale, Rounding rounding) {
  const auto malformed = [text](std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(text), "\" ", std::string(why)));
  };
  std::string_view rest = text;
  if (rest.starts_with('-')) return malformed("is negative");
  Decimal decimal;
  if (!ReadDigits(rest, decimal)) return malformed("is not a quantity");
  int binary = 0, power = 0;
  // "1E" is one exa, "1E3" is a thousand: a suffix wins where both could be.
  if (!ReadSuffix(rest, binary, power)) {
    if (!ReadExponent(rest, decimal)) return malformed("is not a quantity");
    if (!ReadSuffix(rest, binary, power)) return malformed("is not a quantity");
  }
  absl::uint128 factor = static_cast<absl::uint128>(scale) << binary;
  if (power < 0) {
    decimal.exponent += power;
    // Keeps "2000m" from counting as three decimal places.
    while (decimal.exponent < 0 && decimal.mantissa != 0 && decimal.mantissa % 10 == 0) {
      decimal.mantissa /= 10;
      ++decimal.exponent;
    }
  } else {
    factor *= PowerOfTen(power);
  }
  return Scale(decimal, factor, rounding, text);
}

std::string FormatQuantity(int64_t amount, int64_t scale, Rounding rounding) {
  constexpr int64_t kMillion = 1000000;
  const int64_t whole = amount / scale;
  const absl::int128 scaled = absl::int128{amount % scale} * kMillion;
  int64_t micros = static_cast<int64_t>(scaled / scale);
  // Reading rounds a request up: the printed value must not lie above it, and
  // the other way about for what is offered.
  if (rounding == Rounding::kDown && scaled % scale != 0) ++micros;
  if (micros == 0) return absl::StrCat(whole);
  std::string digits = absl::StrCat(kMillion + micros).substr(1);
  if (micros == kMillion) return absl::StrCat(whole + 1);
  while (digits.back() == '0') digits.pop_back();
  return absl::StrCat(whole, ".", digits);
}

std::string FormatBytes(int64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  int64_t divisor = 1;
  while (unit + 1 < kUnits.size() && bytes / divisor >= 1024) {
    divisor *= 1024;
    ++unit;
  }
  const int64_t tenths = static_cast<int64_t>(absl::int128{bytes % divisor} * 10 / divisor);
  const std::string fraction = tenths == 0 ? "" : absl::StrCat(".", tenths);
  return absl::StrCat(bytes / divisor, fraction, " ", std::string(kUnits[unit]));
}

}  // namespace tessera
