#pragma once

#include <string>
#include <string_view>

#include "menger/runtime/values/resources.h"

namespace menger {

// What a call outside of placement groups says of where it runs, or an actor of where it lives, as
// TaskSpec::scheduling has it: "cpu=1;spread;node:7=0.0001".
struct PlaceNeed {
  Resources need;         // First in the text; "": one CPU.
  bool spread = false;    // The nodes that have it do such calls in turn.
  Resources preferred;    // Beside that, as long as some node has all together.
  std::string otherwise;  // The text without what is preferred, if anything is.
};

// Throws InvalidArgument for a text that is none.
PlaceNeed ReadPlaceNeed(std::string_view text);

// `amounts`, `preferred`: as WriteAmounts writes them; "" of the first: one CPU, of the second:
// none.
std::string WritePlaceNeed(std::string_view amounts, bool spread, std::string_view preferred);

}  // namespace menger
