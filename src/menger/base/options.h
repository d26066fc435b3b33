#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace menger {

// An integer option that may be left to the program: "auto" or a number.
struct AutoInt {
  int64_t value = 0;  // Means something only if !is_auto, or once the program has chosen.
  bool is_auto = true;

  bool operator==(const AutoInt&) const = default;
};

// A value on its way into or out of an option. An AutoInt travels as the string "auto" or as an
// integer.
using OptionValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                                 std::vector<std::string>>;

std::string ToText(
    const OptionValue& value);  // "true", "64", "0.99", "linear", "[64, 64]", "[a, b]"

// What an option is where nobody has set it, in place of what its declaration says.
struct OptionDefault {
  std::string section;
  std::string name;
  OptionValue value;
};

// Names and values of options, as Options::SetFromText takes them.
using OptionTexts = std::vector<std::pair<std::string, std::string>>;

// What is allowed, and what it is good for.
struct OptionHelp {
  double minimum =
      -std::numeric_limits<double>::infinity();  // For numbers: each element, both ends allowed.
  double maximum = std::numeric_limits<double>::infinity();
  bool above_minimum = false;             // The minimum itself is not allowed.
  std::vector<std::string> choices = {};  // For strings: each element; empty allows all.
  // For strings that may be more than choices: whether one is allowed too, and what such a one is.
  bool (*accepts)(const std::string& value) = nullptr;
  std::string form = "";
  std::string unit = "";         // "steps", "seconds", ...; "" for a plain number.
  std::string consequence = "";  // One line: what changes when the user changes it.
};

// One row of the table that `menger describe` prints, and one line of a resolved configuration.
struct OptionEntry {
  std::string name;  // "discount"
  std::string key;   // "ppo.discount"
  std::string type;  // "bool", "integer", "number", "text", "integers", "texts", "integer or auto"
  OptionValue default_value;
  OptionValue value;
  std::string allowed;  // "0 to 1", "one of constant, linear", ">= 1", ""
  std::string unit;
  std::string consequence;
  std::string origin;  // Where the value comes from: what SetDefault or SetOrigin said, or "".
};

// The single declaration of a component's options: name, binding to a field, default, limits, unit,
// consequence. From here they reach TOML, `--set`, `--help` and the docs.
//
//     struct PpoConfig {
//       double discount = 0.99;
//       std::string schedule = "linear";
//       void Declare(Options& options) {
//         options.Add("discount", &discount, {.minimum = 0, .maximum = 1, .consequence = "how far
//         ahead rewards count"}); options.Add("schedule", &schedule, {.choices = {"constant",
//         "linear"}, .consequence = "..."});
//       }
//     };
//
// Options borrows the fields: they must stay where they are as long as it is used. The default is
// the field's value when it is added. Not for several threads. Every refusal is InvalidArgument and
// names the full key, the value, and what would be right; a refused value leaves the field as it
// was.
class Options {
 public:
  // `section` is put before each name as "section." in keys and errors; "" for the top level.
  explicit Options(std::string section = "");

  // Throws Internal if the name is taken or the default is not allowed: both are mistakes in the
  // declaration.
  void Add(std::string name, bool* field, OptionHelp help);
  void Add(std::string name, int64_t* field, OptionHelp help);
  void Add(std::string name, double* field, OptionHelp help);
  void Add(std::string name, std::string* field, OptionHelp help);
  void Add(std::string name, std::vector<int64_t>* field, OptionHelp help);
  void Add(std::string name, std::vector<std::string>* field, OptionHelp help);
  void Add(std::string name, AutoInt* field, OptionHelp help);

  // An integer is accepted for a number, and a number without fraction (1e6) for an integer. An
  // empty list is accepted for a list of either kind. Unknown names are errors that name the
  // nearest valid one.
  void Set(std::string_view name, const OptionValue& value);

  // As `--set section.name=text` has it: true, 64, 1e-3, linear, [64, 64] or 64,64, auto. Quotes
  // around texts are dropped.
  void SetFromText(std::string_view name, std::string_view text);

  // The default from now on, and the value unless one has been set; `origin` says where it comes
  // from.
  void SetDefault(std::string_view name, const OptionValue& value, std::string origin);

  // Where the present value comes from, for entries.
  void SetOrigin(std::string_view name, std::string origin);
  const std::string& Origin(std::string_view name) const { return options_[Find(name)].origin; }

  // All of them at once, for the same component in another process. Numbers survive to the last
  // bit.
  OptionTexts Texts() const;
  void SetFromTexts(const OptionTexts& texts);

  bool Contains(std::string_view name) const;
  OptionValue Get(std::string_view name) const;  // Throws InvalidArgument for an unknown name.
  std::vector<OptionEntry> Entries() const;  // In the order of declaration, with current values.
  std::vector<std::string> Names() const;
  std::string Key(std::string_view name) const;  // "section.name"

  const std::string& section() const { return section_; }

 private:
  using Field = std::variant<bool*, int64_t*, double*, std::string*, std::vector<int64_t>*,
                             std::vector<std::string>*, AutoInt*>;
  struct Option {
    std::string name;
    Field field;
    OptionValue default_value;
    OptionHelp help;
    bool is_set = false;
    std::string origin = {};
  };

  void AddField(std::string name, Field field, OptionHelp help);
  std::size_t Find(std::string_view name) const;
  static void Assign(const Option& option, const std::string& key, const OptionValue& value);

  std::string section_;
  std::vector<Option> options_;
};

}  // namespace menger
