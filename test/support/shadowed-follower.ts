/** A follower whose every pass is also decided in memory: it fails if the rows differ. */
import type { Db } from '../../db/client.ts'
import { loadMarkets } from '../../db/markets.ts'
import { Follower, type FollowOptions, type FollowPorts } from '../../indexer/ingest/follow.ts'
import { ChainShadow } from '../../stack/shadow/chain-shadow.ts'

/** Whether fixtures shadow their followers unless a test asks otherwise: `CHAIN_SHADOW=1`. */
export const SHADOWS_ALL = process.env.CHAIN_SHADOW === '1'

/** One per database: a follower that takes over continues with what the one before has left. */
const shadows = new WeakMap<Db, ChainShadow>()

export class ShadowedFollower extends Follower {
  readonly shadow: ChainShadow
  readonly #db: Db

  constructor(ports: FollowPorts, options: FollowOptions) {
    super(ports, options)
    const { db, chain } = ports
    const { bank, accountManager, forwarder, confirmations } = options
    const contracts = async () => {
      const markets = await loadMarkets(db)
      return { bank, accountManager, forwarder, markets: new Map(markets.map((spec) => [spec.trader, spec])) }
    }
    this.#db = db
    this.shadow = shadows.get(db) ?? new ChainShadow({ db, chain, contracts, confirmations })
    shadows.set(db, this.shadow)
  }

  override async pass(): Promise<boolean> {
    // Rows of two passes at once are indistinguishable.
    if (this.shadow.isBusy) this.shadow.isStopped = true
    this.shadow.isBusy = true
    try {
      await this.shadow.begin()
      const isReached = await super.pass().catch(async (error: unknown) => {
        await this.#compare(false)
        throw error
      })
      await this.#compare(isReached)
      return isReached
    } finally {
      this.shadow.isBusy = false
    }
  }

  async #compare(isReached: boolean): Promise<void> {
    const open = await this.#db.selectFrom('chain_steps').select('block').limit(1).execute()
    // The steps of a block that are applied are not in the order of the chain.
    if (open.length > 0) this.shadow.isStopped = true
    if (this.shadow.isStopped) return
    const tip = await this.#db
      .selectFrom('chain_blocks')
      .select(['number', 'timestamp'])
      .orderBy('number', 'desc')
      .limit(1)
      .executeTakeFirst()
    const found = await this.shadow.compare(isReached && tip !== undefined ? tip : null)
    if (found.length > 0) throw new Error(found.join('\n'))
  }
}
