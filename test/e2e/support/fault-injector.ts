/** Carries out the faults of a round on a running exchange. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Address } from '../../../domain/units.ts'
import type { Stack } from '../../../stack/stack.ts'
import { foreignTransfer, replaceBlocks } from '../../support/chain-faults.ts'
import { waitFor } from '../../support/patience.ts'
import { preconfirmed, type RpcProxy, startRpcProxy } from '../../support/rpc-proxy.ts'
import { LEVERAGED, type Place } from './commands.ts'
import type { Crash, Fault, MarketId } from './faults.ts'
import type { SingleActions } from './single-actions.ts'
import { BUDGET_MS } from './trader-notes.ts'

/** After its start the keeper's clock is right for the first time, then wrong for the second. */
const CLOCK_STEP_MS = [700, 3_000] as const

/** How long a batch of the fault's own orders may take. */
const MATCH_LIMIT_MS = 3_000

/** With it a market order still reaches its initial margin at prices near the oracle's. */
const HIGHEST_LEVERAGE: Readonly<Record<MarketId, number>> = { 1: 16, 3: 5, 4: 5 }

/** Thousandths of the center price: more than the oracle price of a round is away from it, less than the band. */
const CROSSING = 15

type PlaceOrder = (by: number, place: Place) => Promise<unknown>

export interface InjectorParts {
  readonly stack: Stack
  readonly queue: SingleActions
  /** Addresses of the traders, in lower case. */
  readonly traders: readonly Address[]
  readonly count: (name: string) => void
}

export class FaultInjector {
  readonly #parts: InjectorParts
  /** In front of the chain's node: it responds to a send before the transaction is in a block. */
  readonly #node: RpcProxy
  /** How far the chain's time is ahead of the computer's. */
  readonly time = { aheadMs: 0 }
  /** Forks keep the blocks up to this one. */
  #kept = 0
  /** Forks, and transactions of the run that must not be lost with one, are executed one after another. */
  #chain: Promise<unknown> = Promise.resolve()

  private constructor(parts: InjectorParts, node: RpcProxy) {
    this.#parts = parts
    this.#node = node
  }

  static async start(parts: InjectorParts): Promise<FaultInjector> {
    return new FaultInjector(parts, await startRpcProxy(parts.stack.chain.url, preconfirmed))
  }

  close(): Promise<void> {
    return this.#node.close()
  }

  /** Forks of the round that begins reach back at most to here: the model forgets the orders that ended before. */
  async beginRound(): Promise<void> {
    await this.keepBlocks(async () => {})
  }

  /** No fork happens while `work` runs, and none takes back what it sent. */
  keepBlocks<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#alone(async () => {
      const result = await work()
      this.#kept = await this.#parts.stack.provider.getBlockNumber()
      return result
    })
  }

  /** `place` sends an order of a trader. */
  async inject(faults: readonly Fault[], place: PlaceOrder): Promise<void> {
    for (const fault of faults) {
      await sleep(fault.afterMs)
      await this.#inject(fault, place)
    }
  }

  async #inject(fault: Fault, place: PlaceOrder): Promise<void> {
    const { stack, queue, traders, count } = this.#parts
    switch (fault.kind) {
      case 'kill': {
        const { part, point } = fault
        count(`${part} ${point ?? 'killed'}`)
        if (point === null) return stack[part].restart('SIGKILL')
        return stack[part].restart('SIGTERM', { CLEARBATCH_KILL_AT: point })
      }
      case 'foreign':
        return this.#foreign(fault.market)
      case 'fork':
        return this.#alone(() => this.#fork(fault.depth, fault.foreign))
      case 'clock':
        count('clock steps')
        return stack.keeper.restart('SIGTERM', { NODE_OPTIONS: `--import=${steppingClock(fault.ms)}` })
      case 'preconfirm':
        count('receipts without a block')
        return stack.keeper.restart('SIGTERM', { RPC_URL: this.#node.url })
      case 'deleverage':
        return this.#deleverage(fault, place)
      case 'queue':
        count(`queued ${fault.action}`)
        return queue.add(fault.market, fault.action, {
          account: traders[fault.by] as Address,
          counterparty: traders[(fault.by + 1) % traders.length] as Address,
        })
    }
  }

  async #deleverage(
    fault: Extract<Fault, { readonly kind: 'deleverage' }>,
    place: PlaceOrder,
  ): Promise<void> {
    const { queue, count } = this.#parts
    await this.openLeveraged(fault, place)
    count((await queue.deleverage(fault)) ? 'queued deleveragings' : 'no account to deleverage')
  }

  /** The trader with little margin opens, and `by` trades against it. */
  async openLeveraged(
    { market, by, side, units, isProtected }: Pick<Crash, 'market' | 'by' | 'side' | 'units' | 'isProtected'>,
    place: PlaceOrder,
  ): Promise<void> {
    const { stack } = this.#parts
    const common = { kind: 'place', market, trigger: 0, life: 0, key: null } as const
    const [against, far] = side === 'LONG' ? (['SHORT', CROSSING] as const) : (['LONG', -CROSSING] as const)
    const limit = { ...common, type: 'LIMIT', side: against } as const
    await place(by, { ...limit, units, limit: -far, leverage: 2, reduceOnly: false })
    const leverage = HIGHEST_LEVERAGE[market]
    await place(LEVERAGED, { ...common, type: 'MARKET', side, units, limit: 0, leverage, reduceOnly: false })
    const isOpen = async () => {
      const { user_id } = stack.file.accounts[LEVERAGED] ?? {}
      const own = stack.db
        .selectFrom('read.positions')
        .select(['size', 'pending'])
        .where('market_id', '=', market)
      const row = await own.where('user_id', '=', user_id ?? 0).executeTakeFirst()
      return row !== undefined && row.size + row.pending !== 0
    }
    for (const deadline = Date.now() + MATCH_LIMIT_MS; Date.now() < deadline && !(await isOpen()); )
      await sleep(100)
    if (isProtected) await place(LEVERAGED, { ...limit, units, limit: 2 * far, leverage, reduceOnly: true })
  }

  #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#chain.then(work)
    this.#chain = done.catch(() => {})
    return done
  }

  /** Its nonce is the next one of the chain; the keeper may be faster. */
  async #foreign(market: MarketId): Promise<void> {
    const { stack, count } = this.#parts
    const { provider } = stack
    const raw = await foreignTransfer(provider, stack.keys.relayer(market).privateKey)
    const hash = await provider.send('eth_sendRawTransaction', [raw]).catch(() => null)
    count(hash === null ? 'foreign nonces that the keeper used first' : 'foreign nonces')
  }

  async #fork(depth: number, foreign: MarketId | null): Promise<void> {
    const { stack, count } = this.#parts
    const { provider } = stack
    const head = await provider.getBlockNumber()
    const replaced = Math.min(depth, head - this.#kept)
    if (replaced <= 0) return
    count(foreign === null ? 'forks' : 'forks with a foreign transaction')
    const common = head - replaced
    const keyOf = (market: MarketId) => stack.keys.relayer(market).privateKey
    const transactions = foreign === null ? [] : [await foreignTransfer(provider, keyOf(foreign), common)]
    await replaceBlocks(provider, replaced, transactions, this.time.aheadMs)
    await this.#untilFollowed(common)
  }

  /** The indexer has none of the blocks that the fork replaced. */
  async #untilFollowed(common: number): Promise<void> {
    const { db, provider } = this.#parts.stack
    const isFollowed = async (): Promise<boolean> => {
      const { rows } = await sql<{ number: number; hash: string }>`
        select number, hash from chain_blocks where number > ${common} order by number
      `.execute(db)
      const blocks = await Promise.all(rows.map(({ number }) => provider.getBlock(number)))
      return rows.length > 0 && rows.every(({ hash }, at) => hash === blocks[at]?.hash)
    }
    await waitFor(isFollowed, (done) => done, { budgetMs: BUDGET_MS })
  }
}

/** A module that makes the system clock of a process step and step back. Its monotonic clock is right. */
function steppingClock(ms: number): string {
  const [from, until] = CLOCK_STEP_MS
  const source = `
    const now = Date.now
    let ahead = 0
    Date.now = () => now() + ahead
    setTimeout(() => { ahead = ${ms} }, ${from}).unref()
    setTimeout(() => { ahead = 0 }, ${until}).unref()`
  return `data:text/javascript,${encodeURIComponent(source)}`
}
