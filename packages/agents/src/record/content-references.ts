// References of agent files to skills and scripts (`splitReference`): a name, or `NAME@VERSION` with a tag or
// the beginning of a hash.

export interface Reference {
  readonly name: string;
  /** A tag, or the beginning of a hash. Absent for the current version. */
  readonly version?: string;
}

export function splitReference(text: string): Reference {
  const at = text.indexOf("@");
  return at < 0 ? { name: text } : { name: text.slice(0, at), version: text.slice(at + 1) };
}

/** The mistake in the references of one list, if there is one: a form that is none, or a name with two versions. */
export function referencesProblem(references: readonly string[]): string | undefined {
  const versions = new Map<string, string>();
  for (const text of references) {
    const { name, version } = splitReference(text);
    if (version !== undefined && !/^[A-Za-z0-9][\w.-]{0,63}$/.test(version))
      return `${JSON.stringify(text)} names no version: write NAME@TAG, or NAME@ and the beginning of a hash`;
    const other = versions.get(name);
    if (other !== undefined && other !== text) return `${other} and ${text} are two versions of one name`;
    versions.set(name, text);
  }
  return undefined;
}
