#pragma once

#include <cstddef>
#include <string_view>

namespace menger {

// Levenshtein's distance: insertions, deletions and substitutions of one character.
std::size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace menger
