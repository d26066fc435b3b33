#pragma once

#include <mutex>
#include <string>

namespace menger {

// The terminal's last line while a program works: a progress bar that is drawn again and again.
// Whoever writes lines to standard error meanwhile holds an AboveStatusLine, so that they begin at
// the start of a line, and the bar comes below them. Any thread.

// Draws `text` instead of what is there. Only for a terminal, and in its width.
void DrawStatusLine(const std::string& text);

// Leaves the terminal at the start of an empty line; `keep`: below what was drawn last.
void EndStatusLine(bool keep);

// Nothing is drawn while it lives, and what was, again at its end. Not twice on one thread.
class AboveStatusLine {
 public:
  AboveStatusLine();
  ~AboveStatusLine();
  AboveStatusLine(const AboveStatusLine&) = delete;
  AboveStatusLine& operator=(const AboveStatusLine&) = delete;

 private:
  const std::lock_guard<std::mutex> lock_;
};

}  // namespace menger
