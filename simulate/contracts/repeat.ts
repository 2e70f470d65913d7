/** Repeats a recorded run on the contracts: every action has the same outcome, and leaves the same books to the wei. */

import { getBytes } from 'ethers'
import { callOf, type SignableAction } from '../../domain/actions/action-rules.ts'
import type { Order, SignedOrder } from '../../domain/orders/order.ts'
import { hashOrder } from '../../domain/orders/order-hash.ts'
import { marginOf } from '../../domain/positions/position.ts'
import { INHERITANCE_FAILURES } from '../../domain/risk/risk-replay.ts'
import type { ForcedFill, OracleReport, SettlementFill } from '../../domain/settlement/settlement.ts'
import type { FundingIndex, Millis, Seconds, Seq, Ticks } from '../../domain/units.ts'
import type { ChainAction, PartFill } from '../chain.ts'
import type { BankPause, ExecutedAction, Recorder } from '../recorder.ts'
import type { Tally } from '../tally.ts'
import { type DeployedExchange, type DeployedMarket, deployExchange, keccak } from './deployed.ts'

/** Seconds from the deployment to the first event. */
const START = 60

export async function repeatOnContracts(recorder: Recorder, tally: Tally): Promise<void> {
  const { specs, deposits, cap } = recorder
  const exchange = await deployExchange({ specs, deposits, cap })
  try {
    await new Repetition(exchange, recorder, tally).run()
  } finally {
    await exchange.close()
  }
}

type PartAction = Extract<ChainAction, { readonly kind: 'part' }>

class Repetition {
  readonly #exchange: DeployedExchange
  readonly #recorder: Recorder
  readonly #tally: Tally
  /** Slots of partly filled orders, and the number of slots in use, by market and account. */
  readonly #slots = new Map<string, Map<Seq, number>>()
  readonly #actionIds: number[]
  /** Time by which the chain's clock is ahead of the run's clock. */
  #offset = 0 as Millis

  constructor(exchange: DeployedExchange, recorder: Recorder, tally: Tally) {
    this.#exchange = exchange
    this.#recorder = recorder
    this.#tally = tally
    this.#actionIds = exchange.markets.map(() => 0)
  }

  async run(): Promise<void> {
    const { events } = this.#recorder
    const [first] = events
    if (first === undefined) return
    const from = first.kind === 'pause' ? first.from : first.action.asOf
    const latest = await this.#exchange.latest()
    this.#offset = ((latest + START - Math.floor(from / 1000)) * 1000) as Millis
    for (const event of events) {
      if (event.kind === 'pause') await this.#pause(event)
      else await this.#repeat(event)
    }
  }

  /** `millis` of the run. The clock does not go back. */
  async #setTime(millis: number): Promise<void> {
    const { latest, setTime } = this.#exchange
    await setTime(Math.max(await latest(), Math.ceil((millis + this.#offset) / 1000)))
  }

  async #pause({ from, endsAt }: BankPause): Promise<void> {
    const { bank } = this.#exchange
    await this.#setTime(from)
    await bank.pause()
    await this.#setTime(endsAt * 1000)
    await bank.unpause()
    const found = Number((await bank.lastPause()).endsAt) - this.#offset / 1000
    this.#tally.check(
      'contracts',
      found === (endsAt as Seconds),
      () => `the pause ends at ${found}, not ${endsAt}`,
    )
  }

  async #repeat(event: ExecutedAction): Promise<void> {
    const { action, error, market: at } = event
    const market = this.#exchange.markets[at] as DeployedMarket
    const asOf = (action.asOf + this.#offset) as Millis
    const report = this.#exchange.report(market.spec.marketId, action.oracle, asOf)
    const actionId = (this.#actionIds[at] as number) + 1
    const { name, args } = callOf(this.#signable(action, market, at, { asOf, report }), actionId, market.spec)
    await this.#setTime(action.asOf)
    const reverted = await revertOf(market.trader.getFunction(name)(...args))
    // The contract executes an inheritance that fails, and moves nothing.
    const expected = error === null || INHERITANCE_FAILURES.some((each) => each === error) ? null : error
    const isSame = expected === null ? reverted === null : (reverted?.includes(expected) ?? false)
    const what = `action ${actionId} of market ${market.spec.marketId}, a ${action.kind}`
    this.#tally.check('contracts', isSame, () => `${what}: ${reverted ?? 'executed'} instead of ${error}`)
    if (reverted === null) this.#actionIds[at] = actionId
    await this.#compare(event, market, what)
  }

  #signable(
    action: ChainAction,
    market: DeployedMarket,
    at: number,
    { asOf, report }: { readonly asOf: Millis; readonly report: OracleReport },
  ): SignableAction {
    const { addressOf } = this.#exchange
    if (action.kind === 'part') return this.#part(action, market, at, asOf, report)
    if (action.kind === 'fund') {
      const validUntil = (action.validUntil + this.#offset) as Millis
      return { kind: 'update_funding', asOf, rate: action.rate, validUntil, report, session: null }
    }
    const account = addressOf(action.account)
    if (action.kind === 'inherit')
      return { kind: 'inherit_position', asOf, account, backstop: addressOf(1 as never), report }
    const legs = action.legs.map((leg) => ({ counterparty: addressOf(leg.account), steps: leg.steps }))
    return { kind: 'deleverage', asOf, account, legs, report }
  }

  #part(
    { fills, place }: PartAction,
    { spec }: DeployedMarket,
    at: number,
    asOf: Millis,
    oracle: OracleReport,
  ): SignableAction {
    const { batch: batchId, part, parts } = place
    const { marketId, makerFee, takerFee } = spec
    const price = (fills[0] as PartFill).price
    const settled = fills.map((fill) => this.#fill(fill, at))
    const actionId = (this.#actionIds[at] as number) + 1
    const terms = { marketId, actionId, batchId, part, parts, asOf, price, makerFee, takerFee, oracle }
    return { kind: 'settle_part', part: { ...terms, fills: settled } }
  }

  #fill(fill: PartFill, at: number): SettlementFill | ForcedFill {
    const { account, side, forced, order } = fill
    const maker = this.#exchange.addressOf(account)
    const shared = { fill: fill.steps, taker: fill.takerSteps }
    if (forced) return { account: maker, number: BigInt(order.seq), side, ...shared }
    return { order: this.#signed(fill, at), partialSlot: this.#slotOf(fill, at), ...shared }
  }

  #signed({ account, side, leverage, order }: PartFill, at: number): SignedOrder {
    const { spec } = this.#exchange.markets[at] as DeployedMarket
    const signer = this.#exchange.signerOf(account)
    const terms: Order = {
      ...{ marketId: spec.marketId, maker: this.#exchange.addressOf(account), side, type: order.type },
      ...{ price: order.limit, quantity: order.quantity, trigger: 0 as Ticks, leverage },
      ...{ reduceOnly: order.reduceOnly, expiration: 0 as Seconds, salt: BigInt(order.seq) },
    }
    const hash = hashOrder(terms, spec, keccak)
    const signature = `${signer.signMessageSync(getBytes(hash))}01` as `0x${string}`
    return { ...terms, hash, signer: signer.address.toLowerCase() as never, signature }
  }

  /** As the keeper assigns them, except that slots of cancelled orders are not assigned again. */
  #slotOf({ account, order }: PartFill, at: number): number | null {
    const key = `${at} ${account}`
    const slots = this.#slots.get(key) ?? new Map<Seq, number>()
    this.#slots.set(key, slots)
    const own = slots.get(order.seq)
    if (own !== undefined || order.remaining === 0 || order.type === 'MARKET') return own ?? null
    slots.set(order.seq, slots.size)
    return slots.size - 1
  }

  async #compare(
    { accounts, pool, fees, action, error }: ExecutedAction,
    { trader, spec }: DeployedMarket,
    what: string,
  ): Promise<void> {
    const { bank, addressOf, markets } = this.#exchange
    const found = await bank.market(spec.trader)
    const all = await Promise.all(markets.map((each) => bank.market(each.spec.trader)))
    const charged = all.reduce((sum, each) => sum + each.fees, 0n)
    const same = (name: string, got: unknown, wanted: unknown): void =>
      this.#tally.check('contracts', got === wanted, () => `after ${what}, ${name} is ${got}, not ${wanted}`)
    same('the pool', found.pool, pool)
    same('the sum of fees', charged, fees)
    const { fundingIndex } = await trader.lastReference()
    if (error === null) same('the funding index', fundingIndex, action.index)
    for (const { account, free, position } of accounts) {
      const address = addressOf(account)
      const [held, ledger] = await Promise.all([trader.position(address), bank.account(address)])
      same(`the size of account ${account}`, held.size, BigInt(position.size))
      same(`the entry of account ${account}`, held.entryNotional, position.entryNotional)
      same(`the margin of account ${account}`, held.margin, marginOf(position, fundingIndex as FundingIndex))
      same(`the free balance of account ${account}`, ledger.free, free)
    }
  }
}

/** The message of a call that reverted, which names its error; null if it succeeded. */
async function revertOf(call: Promise<unknown>): Promise<string | null> {
  try {
    await call
    return null
  } catch (error) {
    return (error as Error).message
  }
}
