/** Parameters of statements that take a set of rows as one JSON value. */

/** An amount in wei as a decimal string, any other value as it is. */
export const weiAsText = (value: unknown): unknown => (typeof value === 'bigint' ? value.toString() : value)

/** JSON with amounts in wei as decimal strings. */
export const toJson = (value: unknown): string => JSON.stringify(value, (_key, each) => weiAsText(each))
