// `scriptWrapper` and `scriptCommand`: how a script runs, and its command for the shell of an agent, as
// programs for any POSIX shell. Pure.
//
//   - The wrapper runs the script. The command checks a call before: a wrong call ends with code 2, what is
//     wrong, and a right call. Awk checks the whole schema (`awkCheck`), as the tool of the script does. Where
//     awk cannot check it, the command names the tool.
//   - No text of a call or a manifest is read as shell code: texts stand in single quotes, and values stay
//     arguments.
//   - The script keeps the folder, the exit code and the streams of the call.
//   - With SCRIPT_EVENTS a line for the start and a line for the end are added to that file. The calls of one
//     command line have IDEMPOTENCY_KEYs of their own, which begin with the name of that file.

import { awkCheck } from "./check/awk-check.ts";
import { SCRIPT_TOOL_PREFIX, type ScriptManifest } from "./script-manifest.ts";
import {
  exampleCall,
  parametersOf,
  quoteForShell as quote,
  usageOf,
  type Parameter,
} from "./script-parameters.ts";

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

/** A right call in a shell, for a prompt. `undefined` where the shell cannot check a call. */
export function shellCall(name: string, schema: ScriptManifest["parameters"]): string | undefined {
  if ("beyond" in awkCheck(schema, parametersOf(schema))) return undefined;
  return exampleCall(name, schema) ?? `${name} --help`;
}

/** Runs the script with the words that it is given. */
export function scriptWrapper(manifest: ScriptManifest, place: WrapperPlace): string {
  return `#!/bin/sh
# Made by Holdfast: runs the script ${manifest.name}, whose call has been checked.
${runLines(manifest, place)}`;
}

/** Checks a call, and then runs the script. */
export function scriptCommand(manifest: ScriptManifest, place: WrapperPlace): string {
  const { name } = manifest;
  const parameters = parametersOf(manifest.parameters);
  const example = exampleCall(name, manifest.parameters);
  return `#!/bin/sh
# Made by Holdfast: checks a call of the script ${name}, and then runs the script.
usage=${quote(usageOf(name, parameters))}
example=${quote(example === undefined ? "" : `a right call: ${example}\n`)}
wrong() {
  printf '%s\\n%s\\n%s' "${name}: $1" "$usage" "$example" >&2
  exit ${WRONG_CALL}
}
check=
case "\${1-}" in
  --check) check=1; shift ;;
  --help) printf '%s\\n' "$usage"; exit 0 ;;
esac
seen=' '
off=' '
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
${checkLines(manifest, parameters)}
[ -z "$check" ] || exit 0
${runLines(manifest, place)}`;
}

function runLines({ name, file, interpreter }: ScriptManifest, { folder, hash }: WrapperPlace): string {
  const [program = "", ...rest] = interpreter.map(quote);
  const run = [program, ...rest, quote(`${folder}/${file}`)].join(" ");
  return `command -v ${program} >/dev/null 2>&1 || {
  printf '%s\\n' ${quote(`${name}: this script needs ${interpreter[0]}, which is not here`)} >&2
  exit ${NOT_FOUND}
}
SCRIPT_DIR=${quote(folder)}
export SCRIPT_DIR
events="\${SCRIPT_EVENTS-}"
unset SCRIPT_EVENTS
if [ -n "$events" ]; then
  IDEMPOTENCY_KEY="\${events##*/}-$(grep -c '^started ' "$events" 2>/dev/null)-$$"
  export IDEMPOTENCY_KEY
  printf '%s\\n' ${quote(`started ${name} ${hash}`)} >> "$events"
fi
${run} "$@"
code=$?
[ -z "$events" ] || printf '%s\\n' "finished ${name} $code" >> "$events"
exit "$code"
`;
}

/** Values that begin with a dash stand behind \`=\`, as the tool gives them. */
function flagCase({ name, type }: Parameter): string {
  const flag = `--${name}`;
  if (type === "switch")
    return `    ${flag})
      case "$has$value" in
        ''|1true) set -- "$@" ${flag} ;;
        1false) off="$off${flag} " ;;
        *) wrong "${flag} is a switch and has no value" ;;
      esac ;;`;
  return `    ${flag})
      if [ -z "$has" ]; then
        [ "$left" -gt 0 ] || wrong "${flag} has no value"
        value=$1
        shift
        left=$((left - 1))
      fi
      case "$value" in
        -*) set -- "$@" "${flag}=$value" ;;
        *) set -- "$@" ${flag} "$value" ;;
      esac ;;`;
}

function checkLines({ name, parameters: schema }: ScriptManifest, parameters: readonly Parameter[]): string {
  const checked = awkCheck(schema, parameters);
  const tool = `${SCRIPT_TOOL_PREFIX}${name}`;
  if ("beyond" in checked)
    return `wrong ${quote(`the shell cannot check ${checked.beyond}, which the parameters have; call the tool ${tool}`)}`;
  return `command -v awk >/dev/null 2>&1 || wrong ${quote(`the shell checks a call by awk, which is not here; call the tool ${tool}`)}
said=$(LC_ALL=C awk ${quote(checked.program)} "$off" "$@" 2>&1) || wrong "\${said:-awk could not check the call}"`;
}
