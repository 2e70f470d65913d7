/** Keys of the maps in `GroupState`. */

export const holdingKey = (marketId: number, userId: number): string => `${marketId}:${userId}`
export const saltKey = (marketId: number, maker: string, salt: bigint | number): string =>
  `${marketId}:${maker}:${salt}`
export const signerKey = (owner: string, key: string): string => `${owner}:${key}`
export const requestKey = (userId: number, id: string): string => `${userId}:${id}`
