/** Parameters of statements that take a set of rows as one JSON value. */

const weiAsText = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value

/** JSON with amounts in wei as decimal strings. */
export const toJson = (value: unknown): string => JSON.stringify(value, weiAsText)
