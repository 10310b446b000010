// `scriptWrapper`: the command of a script for the shell of an agent, as a program for any POSIX shell. Pure.
//
//   - The wrapper checks the call before anything runs. A wrong call ends with code 2, what is wrong, and a
//     right call. It checks names, missing and doubled parameters, types and choices. The tool of the script
//     checks the whole schema.
//   - No text of a call or a manifest is read as shell code: texts stand in single quotes, and values stay
//     arguments.
//   - The script keeps the folder, the exit code and the streams of the call.
//   - With SCRIPT_EVENTS a line for the start and a line for the end are added to that file.

import type { ScriptManifest } from "./script-manifest.ts";
import { exampleCall, parametersOf, usageOf, type Parameter } from "./script-parameters.ts";

/** The exit code of a wrong call. */
const WRONG_CALL = 2;
/** The exit code where the program that runs the script is missing, as shells have it. */
const NOT_FOUND = 127;

export interface WrapperPlace {
  /** The absolute path of the folder with the script's files. */
  readonly folder: string;
  /** The version of the script. */
  readonly hash: string;
}

export function scriptWrapper(manifest: ScriptManifest, { folder, hash }: WrapperPlace): string {
  const { name, file, interpreter } = manifest;
  const parameters = parametersOf(manifest.parameters);
  const [program = "", ...rest] = interpreter.map(quote);
  const run = [program, ...rest, quote(`${folder}/${file}`)].join(" ");
  return `#!/bin/sh
# Made by Holdfast: checks a call of the script ${name}, and then runs the script.
usage=${quote(usageOf(name, parameters))}
example=${quote(exampleCall(name, parameters))}
wrong() {
  printf '%s\\n' "${name}: $1" "$usage" "a right call: $example" >&2
  exit ${WRONG_CALL}
}
check=
case "\${1-}" in
  --check) check=1; shift ;;
  --help) printf '%s\\n' "$usage"; exit 0 ;;
esac
seen=' '
left=$#
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  left=$((left - 1))
  case "$word" in
    --*=*) key="\${word%%=*}"; value="\${word#*=}"; has=1 ;;
    --*) key="$word"; value=; has= ;;
    *) wrong "\\"$word\\" is no parameter: each begins with --, and a value with blanks stands in quotes" ;;
  esac
  case "$seen" in *" $key "*) wrong "$key stands twice" ;; esac
  seen="$seen$key "
  case "$key" in
${parameters.map(flagCase).join("\n")}
    *) wrong "there is no parameter $key" ;;
  esac
done
${parameters
  .filter(({ isRequired, type }) => isRequired && type !== "switch")
  .map(requiredCheck)
  .join("\n")}
[ -z "$check" ] || exit 0
command -v ${program} >/dev/null 2>&1 || {
  printf '%s\\n' ${quote(`${name}: this script needs ${interpreter[0]}, which is not here`)} >&2
  exit ${NOT_FOUND}
}
SCRIPT_DIR=${quote(folder)}
export SCRIPT_DIR
events="\${SCRIPT_EVENTS-}"
unset SCRIPT_EVENTS
[ -z "$events" ] || printf '%s\\n' ${quote(`started ${name} ${hash}`)} >> "$events"
${run} "$@"
code=$?
[ -z "$events" ] || printf '%s\\n' "finished ${name} $code" >> "$events"
exit "$code"
`;
}

function flagCase({ name, type, choices }: Parameter): string {
  const flag = `--${name}`;
  if (type === "switch")
    return `    ${flag})
      case "$has$value" in
        ''|1true) set -- "$@" ${flag} ;;
        1false) ;;
        *) wrong "${flag} is a switch and has no value" ;;
      esac ;;`;
  return `    ${flag})
      if [ -z "$has" ]; then
        [ "$left" -gt 0 ] || wrong "${flag} has no value"
        value=$1
        shift
        left=$((left - 1))
      fi
${valueCheck(flag, type, choices)}      set -- "$@" ${flag} "$value" ;;`;
}

function valueCheck(flag: string, type: Parameter["type"], choices: Parameter["choices"]): string {
  const unless = (pattern: string, why: string): string =>
    `      case "$value" in ${pattern}) ;; *) wrong ${quote(`${flag} is `)}"\\"$value\\""${quote(why)} ;; esac\n`;
  const isWrong = (value: string, pattern: string, why: string): string =>
    `      case "${value}" in ${pattern}) wrong ${quote(`${flag} is `)}"\\"$value\\""${quote(why)} ;; esac\n`;
  if (choices !== null)
    return unless(choices.map(quote).join("|"), `, and it is one of ${choices.join(", ")}`);
  switch (type) {
    case "integer":
      return isWrong("${value#-}", "''|*[!0-9]*", ", and it is a whole number");
    case "number":
      return (
        isWrong("$value", "*[!0-9.eE+-]*", ", and it is a number") + unless("*[0-9]*", ", and it is a number")
      );
    case "json":
      return isWrong("$value", "''", ", and it is JSON");
    case "string":
    case "switch":
      return "";
  }
}

function requiredCheck({ name }: Parameter): string {
  return `case "$seen" in *" --${name} "*) ;; *) wrong "--${name} is missing" ;; esac`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
