/** Keys of the maps in `GroupState`. */

export const holdingKey = (marketId: number, userId: number): string => `${marketId}:${userId}`
export const saltKey = (marketId: number, maker: string, salt: bigint | number): string =>
  `${marketId}:${maker}:${salt}`
export const signerKey = (owner: string, key: string): string => `${owner}:${key}`
export const labelKey = (userId: number, clientOrderId: string): string => `${userId}:${clientOrderId}`
export const requestKey = (userId: number, id: string): string => `${userId}:${id}`

/** The salt of a forced order is its own number, and not one of the trader's. */
export const bySalt = <Row extends SaltedRow>(rows: readonly Row[]): Map<string, Row> =>
  new Map(
    rows.filter(({ forced }) => !forced).map((row) => [saltKey(row.market_id, row.maker, row.salt), row]),
  )

interface SaltedRow {
  readonly market_id: number
  readonly maker: string
  readonly salt: number
  readonly forced: boolean
}
