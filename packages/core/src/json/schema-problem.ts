// `schemaProblemText` says what is wrong with a value, so that its sender can correct it.

/** A report of a validator of JSON Schema about one place. */
export interface SchemaProblem {
  readonly keyword: string;
  readonly message?: string | undefined;
  readonly params: unknown;
}

export function schemaProblemText({ keyword, message = "is not right", params }: SchemaProblem): string {
  const { allowedValues, additionalProperty } = params as {
    readonly allowedValues?: readonly unknown[];
    readonly additionalProperty?: string;
  };
  if (keyword === "enum" && allowedValues !== undefined)
    return `must be one of ${allowedValues.map((value) => JSON.stringify(value)).join(", ")}`;
  return additionalProperty === undefined ? message : `${message}: "${additionalProperty}"`;
}
