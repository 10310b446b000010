// `AWK_RUNTIME`: the functions in awk that a check of a call begins with. They read JSON and compare values.
//
//   - A value is a number. T has its type, V its text, N its count. H has its parts by name or position, and
//     K the names of an object by position.
//   - Texts are read as bytes where the awk has bytes, and as characters where it has them (WIDE).
//   - SAID has a line for each thing that is wrong. Nothing is said while QUIET.
//
// Five programs run it: mawk, gawk and original-awk of Debian, BusyBox, and the emulated shell. They have no
// numbers of repetition and no `length` of an array in common. A comparison of joined texts needs brackets.
// `return` answers with no call of a function of ours, which the emulated shell forgets. A function has
// no `continue`, which that shell does in the caller too. The parts of a joined place are variables.

export const AWK_RUNTIME = String.raw`
function fail(place, why) {
  if (place != "") why = place " " why
  if (!QUIET) SAID = SAID why "\n"
  return 0
}
function yes(n, place) { return 1 }
function no(n, place) { fail(place, "is not permitted"); return 0 }
function at(place, name) { return place == "" ? "--" name : place "/" name }
function node(type, text) { NODES++; T[NODES] = type; V[NODES] = text; N[NODES] = 0; return NODES }
function put(n, name, part) {
  if (!((n, name) in H)) K[n, ++N[n]] = name
  H[n, name] = part
}
function plain(text) {
  if (WIDE) gsub(/[^\001-\177]/, "\177", text)
  else { gsub(/[\200-\277]/, "", text); gsub(/[\300-\377]/, "\177", text) }
  return text
}
function shown(n) {
  if (T[n] == "object") return "an object"
  if (T[n] == "array") return "a list"
  return T[n] == "string" ? "\"" substr(V[n], 1, 80) "\"" : V[n]
}
function isWhole(x) { return x * x > 8e31 || x % 1 == 0 }
function isNumber(text) { return text ~ /^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?$/ }
function same(a, b,   i, name) {
  if (T[a] != T[b] || N[a] != N[b]) return 0
  if (T[a] == "number") return V[a] + 0 == V[b] + 0
  if (T[a] == "array") { for (i = 0; i < N[a]; i++) if (!same(H[a, i], H[b, i])) return 0; return 1 }
  if (T[a] != "object") return ((V[a] "") == (V[b] ""))
  for (i = 1; i <= N[a]; i++) {
    name = K[a, i]
    if (!((b, name) in H)) return 0
    if (!same(H[a, name], H[b, name])) return 0
  }
  return 1
}
# The same for equal values, and mostly different for others. Names are in the order in which they were first met.
function mark(n,   m, i, j, part, last, best, name) {
  if (T[n] == "number") return V[n] + 0 == 0 ? "number 0" : "number " (V[n] + 0)
  if (T[n] != "array" && T[n] != "object") return T[n] " " V[n]
  m = T[n] " " N[n]
  if (T[n] == "object" && N[n] > 32) return m
  if (T[n] == "array") for (i = 0; i < N[n]; i++) { part = mark(H[n, i]); m = m " " length(part) ":" part }
  if (T[n] == "array") return m
  for (i = 1; i <= N[n]; i++) if (!(K[n, i] in RANK)) RANK[K[n, i]] = ++RANKS
  last = 0
  for (i = 1; i <= N[n]; i++) {
    best = 0
    for (j = 1; j <= N[n]; j++) if (RANK[K[n, j]] > last && (best == 0 || RANK[K[n, j]] < best)) { best = RANK[K[n, j]]; name = K[n, j] }
    part = mark(H[n, name])
    m = m " " best " " length(part) ":" part
    last = best
  }
  return m
}
function twice(n,   i, j, m) {
  for (i = 0; i < N[n]; i++) {
    m = mark(H[n, i])
    if (!((n, m) in MET)) MET[n, m] = i
    for (j = MET[n, m]; j < i; j++) if (same(H[n, i], H[n, j])) return 1
  }
  return 0
}
function character(code) {
  if (WIDE) return sprintf("%c", code == 0 ? 65535 : code)
  if (code == 0) return "\300\200"
  if (code < 128) return sprintf("%c", code)
  if (code < 2048) return sprintf("%c%c", 192 + int(code / 64), 128 + code % 64)
  if (code < 65536) return sprintf("%c%c%c", 224 + int(code / 4096), 128 + int(code / 64) % 64, 128 + code % 64)
  return sprintf("%c%c%c%c", 240 + int(code / 262144), 128 + int(code / 4096) % 64, 128 + int(code / 64) % 64, 128 + code % 64)
}
function hex(   i, code, digit) {
  code = 0
  for (i = 0; i < 4; i++) {
    digit = index("0123456789abcdef", tolower(substr(TEXT, AT + i, 1)))
    if (substr(TEXT, AT + i, 1) == "" || digit == 0) { BAD = 1; return 0 }
    code = code * 16 + digit - 1
  }
  AT += 4
  return code
}
function escaped(   c, code, low) {
  c = substr(TEXT, AT++, 1)
  if (c == "n") return "\n"
  if (c == "t") return "\t"
  if (c == "r") return "\r"
  if (c == "b") return "\b"
  if (c == "f") return "\f"
  if (c == "\"" || c == "\\" || c == "/") return c
  if (c != "u") { BAD = 1; return "" }
  code = hex()
  if (code >= 55296 && code < 56320 && substr(TEXT, AT, 2) == "\\u") {
    AT += 2
    low = hex()
    if (low >= 56320 && low < 57344) code = 65536 + (code - 55296) * 1024 + low - 56320
    else TEXT = substr(TEXT, 1, AT - 1) character(low) substr(TEXT, AT)
  }
  c = character(code)
  return c
}
function string(   c, text, piece) {
  text = ""
  AT++
  while (!BAD) {
    piece = substr(TEXT, AT, 500)
    if (match(piece, /^[^"\\[:cntrl:]]+/)) { text = text substr(piece, 1, RLENGTH); AT += RLENGTH; continue }
    c = substr(TEXT, AT++, 1)
    if (c == "\"") return text
    if (c == "\\") text = text escaped()
    else if (c == "" || c < " ") BAD = 1
    else text = text c
  }
  return ""
}
function blank() { while (substr(TEXT, AT, 1) ~ /^[ \t\r\n]$/) AT++ }
function value(   c, n, name, part, text, type) {
  blank()
  c = substr(TEXT, AT, 1)
  if (c == "\"") { text = string(); n = node("string", text); return n }
  if (c == "{" || c == "[") {
    AT++
    n = node(c == "{" ? "object" : "array", "")
    blank()
    if (substr(TEXT, AT, 1) == (c == "{" ? "}" : "]")) { AT++; return n }
    while (!BAD) {
      name = N[n]
      if (c == "{") {
        blank()
        if (substr(TEXT, AT, 1) != "\"") { BAD = 1; return n }
        name = string()
        blank()
        if (substr(TEXT, AT++, 1) != ":") { BAD = 1; return n }
      }
      part = value()
      put(n, name, part)
      blank()
      text = substr(TEXT, AT++, 1)
      if (text == (c == "{" ? "}" : "]")) return n
      if (text != ",") BAD = 1
    }
    return n
  }
  text = ""
  while (substr(TEXT, AT, 1) ~ /^[-+.0-9a-zA-Z]$/) text = text substr(TEXT, AT++, 1)
  type = "number"
  if (text == "true" || text == "false") type = "boolean"
  else if (text == "null") type = "null"
  else if (!isNumber(text)) BAD = 1
  n = node(type, text)
  return n
}
function json(text,   n) {
  TEXT = text; AT = 1; BAD = 0
  n = value()
  blank()
  if (AT <= length(TEXT)) BAD = 1
  return n
}
function given(name, kind, text,   n) {
  if (kind == "json") {
    n = json(text)
    if (BAD) fail("--" name, "is \"" substr(text, 1, 80) "\", and it is JSON")
  } else n = node(kind != "string" && isNumber(text) ? "number" : "string", text)
  return n
}
# Reads the words of a call, which the shell has put into one form. The first has the switches that are off.
function call(   root, i, e, name, text) {
  root = node("object", "")
  for (name in KIND) if (KIND[name] == "switch" && index(ARGV[1], " --" name " ")) put(root, name, node("boolean", "false"))
  for (i = 2; i < ARGC; i++) {
    name = substr(ARGV[i], 3)
    e = index(name, "=")
    if (e > 0) { text = substr(name, e + 1); name = substr(name, 1, e - 1) }
    if (KIND[name] == "switch") put(root, name, node("boolean", "true"))
    else put(root, name, given(name, KIND[name], e > 0 ? text : ARGV[++i]))
  }
  for (name in NEEDED) if (!((root, name) in H)) put(root, name, node("boolean", "false"))
  return root
}
`;
