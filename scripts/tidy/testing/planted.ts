// A planted violation: files that break one rule of tidy, beside files that are right.

export type Files = Readonly<Record<string, string>>;

export interface Planted {
  readonly rule: string;
  readonly promise: string;
  /** Files that break the rule, the broken one first. */
  readonly wrong: Files;
  /** The path that the violation names, unless it is the first file. */
  readonly at?: string;
  /** Subjects of commits that break the rule, and of commits that are right. */
  readonly commits?: { readonly wrong: string; readonly right: string };
  /** Files close to these that are right. */
  readonly right?: Files;
}

export const CORE = { "packages/core/package.json": '{"name":"@holdfast/core"}' };
export const PACKAGES: Files = {
  ...CORE,
  "packages/runtime/package.json": '{"name":"@holdfast/runtime"}',
  "packages/storage/package.json": '{"name":"@holdfast/storage"}',
  "packages/testkit/package.json": '{"name":"@holdfast/testkit"}',
};

export function sourcesIn(folder: string, count: number): Files {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`${folder}/s${index}.ts`, ""]));
}

/** A function of so many lines. */
export function functionOf(lines: number): string {
  return `export function a() {\n${"\n".repeat(lines - 2)}}`;
}

export function classOf(count: number, member: (index: number) => string): string {
  return `export class A {\n${Array.from({ length: count }, (_, index) => member(index)).join("\n")}\n}`;
}
