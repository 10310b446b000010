// Columns of many rows as parameters: arrays in PostgreSQL's binary format, which neither side has to quote,
// escape or parse. Measured with groups of 64 rows of 200 bytes: a third of the time that arrays as text take
// on both sides together.
//
// Text must be well formed and without NUL; that is checked before it comes here (`texts.ts`).

/** PostgreSQL's numbers for the types of elements. */
const OIDS = { int4: 23, int8: 20, float8: 701, text: 25 } as const;

export type ElementType = keyof typeof OIDS;
export type Element = string | number | null;

const HEADER_BYTES = 20;
const NULL_LENGTH = -1;
const TWO_32 = 2 ** 32;

export function binaryArray(type: ElementType, values: readonly Element[]): Buffer {
  const { bytes, hasNull } = measure(type, values);
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + bytes);
  buffer.writeInt32BE(1, 0); // One dimension.
  buffer.writeInt32BE(hasNull ? 1 : 0, 4);
  buffer.writeInt32BE(OIDS[type], 8);
  buffer.writeInt32BE(values.length, 12);
  buffer.writeInt32BE(1, 16); // Its first index.
  let at = HEADER_BYTES;
  for (const value of values) {
    const length = value === null ? NULL_LENGTH : writeElement(buffer, at + 4, type, value);
    buffer.writeInt32BE(length, at);
    at += 4 + Math.max(length, 0);
  }
  return buffer;
}

function measure(
  type: ElementType,
  values: readonly Element[],
): { readonly bytes: number; readonly hasNull: boolean } {
  let bytes = 4 * values.length;
  let hasNull = false;
  for (const value of values) {
    if (value === null) hasNull = true;
    else bytes += type === "text" ? Buffer.byteLength(value as string) : type === "int4" ? 4 : 8;
  }
  return { bytes, hasNull };
}

/** Answers how many bytes it took. */
function writeElement(buffer: Buffer, at: number, type: ElementType, value: string | number): number {
  switch (type) {
    case "text":
      return buffer.write(value as string, at);
    case "int4":
      return buffer.writeInt32BE(value as number, at) - at;
    case "int8":
      return writeInt64(buffer, at, value as number) - at;
    case "float8":
      return buffer.writeDoubleBE(value as number, at) - at;
  }
}

/** In two halves: a BigInt for each would be three times as slow. */
function writeInt64(buffer: Buffer, at: number, value: number): number {
  const high = Math.floor(value / TWO_32);
  buffer.writeInt32BE(high, at);
  return buffer.writeUInt32BE(value - high * TWO_32, at + 4);
}
