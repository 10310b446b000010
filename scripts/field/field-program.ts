// `FieldProgram`: a program of the campaign `field`, and what its output says when its user gets what they expect.
//
// Each program plays a situation that users of some system reported in public, or an attack. The programs judge
// nothing and lie outside of the checkout. A judgement is about the expectation of the user, and not about what
// we happen to do.

export interface FieldProgram {
  /** Its file below the folder of the programs. */
  readonly file: string;
  /** Arguments of a program that has several cases. */
  readonly args?: readonly string[];
  /** The expectation of its user. */
  readonly expects: string;
  readonly says: readonly RegExp[];
  readonly neverSays?: readonly RegExp[];
  /** The program asks for what cannot be. It is played as its user can write it. */
  readonly misuse?: {
    readonly reason: string;
    /** The right text of the program. */
    readonly repair: (text: string) => string;
  };
}

/** The lines of a program that says the same of several things. */
export const lines = (names: readonly string[], then: RegExp): readonly RegExp[] =>
  names.map((name) => new RegExp(`^${name.replaceAll(/[$()*.|/]/g, String.raw`\$&`)}${then.source}`, "m"));
