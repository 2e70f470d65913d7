/** Settles what the engine has matched, without a chain: signs and sends the next action of each market, and mines blocks with the parts. */
import { byAccount } from '../../domain/auction/batch.ts'
import type { LoggedFact } from '../../domain/chain/facts.ts'
import { FLAT, openingBasis, type Position } from '../../domain/positions/position.ts'
import { settleAccount } from '../../domain/settlement/settle-account.ts'
import type {
  BatchSettled,
  SettledFill,
  SettlementFill,
  SettlementPart,
} from '../../domain/settlement/settlement.ts'
import type { Address, FundingIndex, Millis, Quote } from '../../domain/units.ts'
import { ask } from '../../keeper/engine/link/engine.ts'
import type { BenchMarket } from '../intake/orders.ts'
import type { Outside } from './outside.ts'
import { addressOf } from './state.ts'

const BUDGET_MS = 30_000
const CHAIN_ID = 6343
const BLOCK_MS = 1_000
/** Parts of a market per block. */
const MOST_PARTS = 20
/** The contract accepts an action at most this far ahead of its block; the bench's chain has no clock of its own. */
const AHEAD_MS = 2_000

const hexOf = (number: number): `0x${string}` => `0x${number.toString(16).padStart(64, '0')}`

type OrderFill = Extract<SettlementFill, { readonly order: unknown }>

export class Miner {
  readonly #outside: Outside
  readonly #markets: readonly BenchMarket[]
  readonly #positions = new Map<string, Position>()
  #block = 0
  #hashes = 0
  #isStopped = false
  #work: Promise<void> = Promise.resolve()
  /** Deposits of the next block. */
  #deposits = 0
  mined = 0

  constructor(outside: Outside, markets: readonly BenchMarket[]) {
    this.#outside = outside
    this.#markets = markets
  }

  async start(): Promise<void> {
    const { worker } = this.#outside.clients
    for (const { spec } of this.#markets) {
      const lane = { relayer: relayerOf(spec.marketId), chainId: CHAIN_ID, lane: `m${spec.marketId}` }
      await ask<'register_lane'>(worker, { kind: 'register_lane', ...lane, firstNonce: 0 }, BUDGET_MS)
    }
    this.#work = this.#run()
  }

  /** The next block has as many deposits. */
  fill(deposits: number): void {
    this.#deposits = deposits
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#work
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const started = performance.now()
      await this.#mine()
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, BLOCK_MS - performance.now() + started)))
    }
  }

  async #mine(): Promise<void> {
    const facts: LoggedFact[] = []
    for (const market of this.#markets)
      for (let sent = 0; sent < MOST_PARTS; sent++) {
        const part = await this.#send(market)
        if (part === null) break
        facts.push(part)
      }
    for (; this.#deposits > 0; this.#deposits--) {
      const account = addressOf(1_000 + this.#deposits)
      const moved = {
        kind: 'ledger_moved',
        cause: 'deposit',
        account,
        freeDelta: 1n,
        pendingDelta: 0n,
      } as const
      facts.push({ log: { logIndex: 0, txHash: hexOf(++this.#hashes), address: account }, fact: moved })
    }
    await this.#apply(facts.map(({ log, fact }, logIndex) => ({ log: { ...log, logIndex }, fact })))
  }

  async #apply(facts: readonly LoggedFact[]): Promise<void> {
    const { ingest } = this.#outside.clients
    const number = ++this.#block
    const timestamp = Math.floor(Date.now() / 1000)
    const block = { number, hash: hexOf(number), parentHash: hexOf(number - 1), timestamp }
    const answer = await ask<'apply_block'>(
      ingest,
      { kind: 'apply_block', block, from: number, facts, silent: [], positions: [], gasUsed: new Map() },
      BUDGET_MS,
    )
    if (answer.kind !== 'done')
      throw new Error(
        `the engine has not applied a block of the bench: ${JSON.stringify(answer).slice(0, 300)}`,
      )
    await ask<'confirm_blocks'>(ingest, { kind: 'confirm_blocks', number, timestamp }, BUDGET_MS)
  }

  /** Null if the market has nothing to settle. */
  async #send({ spec }: BenchMarket): Promise<LoggedFact | null> {
    const { worker } = this.#outside.clients
    const { marketId } = spec
    const relayer = relayerOf(marketId)
    const latestAsOf = (Date.now() + AHEAD_MS) as Millis
    const next = await ask<'next_action'>(
      worker,
      { kind: 'next_action', marketId, relayer, latestAsOf },
      BUDGET_MS,
    )
    if (next.kind !== 'action') return null
    const { queueNo, nonce, action, actionId } = next
    const hash = hexOf(++this.#hashes)
    const signed = {
      kind: 'signed',
      marketId,
      queueNo,
      relayer,
      nonce,
      attempt: 1,
      hash,
      purpose: action.kind,
    } as const
    await ask<'signed'>(worker, signed, BUDGET_MS)
    await ask<'submitted'>(worker, { kind: 'submitted', marketId, relayer, nonce }, BUDGET_MS)
    if (action.kind !== 'settle_part') throw new Error(`the bench mines parts only, received ${action.kind}`)
    this.mined++
    const fact = { kind: 'part_mined', spec, settled: this.#settle(spec, action.part, actionId) } as const
    return { log: { logIndex: 0, txHash: hash, address: spec.trader }, fact }
  }

  /** The log of the contract for the part. */
  #settle(spec: BenchMarket['spec'], part: SettlementPart, actionId: number): BatchSettled {
    const { price, makerFee, takerFee, oracle } = part
    const fundingIndex = 0n as FundingIndex
    const orders = part.fills.filter((fill): fill is OrderFill => 'order' in fill)
    const byMaker = byAccount(orders.map((fill) => ({ ...fill, account: fill.order.maker as never })))
    const fills = byMaker.flatMap((run): SettledFill[] => {
      const key = `${spec.marketId} ${(run[0] as OrderFill).order.maker}`
      const given = run.map(({ order, fill, taker }) => ({
        side: order.side,
        price,
        steps: fill,
        takerSteps: taker,
        leverage: order.leverage,
        basis: openingBasis(spec, { side: order.side, limit: order.price }, price, oracle.price),
      }))
      const terms = { makerFee, takerFee, fundingIndex, oracle: oracle.price }
      const verdict = settleAccount(spec, this.#positions.get(key) ?? FLAT, given, terms)
      if (!verdict.ok) throw new Error(`the contract would reject a part: ${verdict.refusal.code}`)
      this.#positions.set(key, verdict.value.position)
      return run.map(({ order, fill, taker, partialSlot }, at) => ({
        maker: order.maker as Address,
        salt: order.salt,
        isForced: false,
        side: order.side,
        reduceOnly: order.reduceOnly,
        leverage: order.leverage,
        fill,
        taker,
        partialSlot,
        isDead: false,
        isFeeCapped: true,
        fee: verdict.value.results[at]?.fee as Quote,
        freeDelta: verdict.value.results[at]?.freeDelta as Quote,
      }))
    })
    const { batchId, part: number, parts, asOf } = part
    const { price: oraclePrice, observedAt } = oracle
    return {
      actionId,
      batchId,
      part: number,
      parts,
      price,
      asOf,
      oraclePrice,
      observedAt,
      fundingIndex,
      fills,
      makerFee,
      takerFee,
    }
  }
}

const relayerOf = (marketId: number): string => `0x${(0xe0_00 + marketId).toString(16).padStart(40, '0')}`
