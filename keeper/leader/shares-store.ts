/** What keepers announce to each other in Postgres. */
import type { Db } from '../../db/client.ts'
import { announceKeeper, deleteKeeper, leaseOwners, liveKeepers } from '../../db/keepers.ts'
import type { SharesStore } from './market-shares.ts'

/** Followed by the number of the market. */
const AUCTIONS = 'auction:m'

/** `lifeMs`: how long a keeper that announces nothing counts as live; that of the leases. */
export const createSharesStore = (db: Db, lifeMs: number): SharesStore => ({
  announce: ({ id, capacity, isLate, markets }) =>
    announceKeeper(db, { owner: id, capacity, is_late: isLate, markets: [...markets] }, lifeMs),

  async read() {
    const [keepers, owners] = await Promise.all([liveKeepers(db), leaseOwners(db, AUCTIONS)])
    return {
      keepers: keepers.map(({ owner, capacity, is_late, markets }) => ({
        ...{ id: owner, capacity, isLate: is_late, markets: new Set(markets) },
      })),
      owners: new Map([...owners].map(([market, owner]) => [Number(market), owner])),
    }
  },

  withdraw: (id) => deleteKeeper(db, id),
})
