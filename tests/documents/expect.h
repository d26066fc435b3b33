#pragma once

#include <cstdlib>
#include <iostream>
#include <string_view>

// Ends the program, saying what does not hold.
inline void Expect(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "does not hold: " << what << "\n";
  std::exit(1);
}
