/** Receipts of one action of each kind on the deployed contracts, with the positions before it, and alterations of their logs. */
import { AbiCoder, type Log, type LogDescription, type Wallet } from 'ethers'
import { after, before } from 'mocha'
import type { ChainFact } from '../../../domain/chain/facts.ts'
import { hashMarginAdjustment } from '../../../domain/positions/adjustment-hash.ts'
import { applyAdjusted } from '../../../domain/positions/adjustment-replay.ts'
import type { Position } from '../../../domain/positions/position.ts'
import { applyDeleveraged, applyInherited } from '../../../domain/risk/risk-replay.ts'
import { NO_EVENTS, type PartExpectation, type ReceiptEvents } from '../../../domain/settlement/receipt.ts'
import { movementOf } from '../../../domain/settlement/settle-part.ts'
import type { SettlementPart } from '../../../domain/settlement/settlement.ts'
import type { Address, Price, Quote, Seconds } from '../../../domain/units.ts'
import { decodeLog } from '../../../indexer/ingest/decode/decode-log.ts'
import type { ChainLog } from '../../../indexer/ports.ts'
import { Backstop__factory } from '../../../typechain-types/factories/Backstop__factory.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { useAnvil } from '../../support/anvil.ts'
import { keccak } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { addressOf, CHAIN_ID, ExchangeFixture } from './exchange-fixture.ts'

const TRADER = IsolatedTrader__factory.createInterface()
const DROPPED = e18('80')
export const ADDED = e18('100') as Quote
export const ADJUSTMENT_NONCE = 3n

/** The market's logs of one transaction, and what the positions were before it. */
export interface RecordedReceipt {
  readonly logs: readonly ChainLog[]
  readonly positions: ReadonlyMap<Address, Position>
}

export interface RecordedReceipts {
  readonly batch: RecordedReceipt & { readonly part: SettlementPart }
  readonly adjustment: RecordedReceipt
  readonly inheritance: RecordedReceipt
  /** The market had no backstop. */
  readonly failedInheritance: RecordedReceipt
  readonly deleveraging: RecordedReceipt
  /** The only counterparty had no position. */
  readonly emptyDeleveraging: RecordedReceipt
  readonly alice: Address
  readonly bob: Address
  readonly backstop: Address
}

class Recorder {
  readonly #exchange: ExchangeFixture
  readonly #alice: Wallet
  readonly #bob: Wallet

  constructor(exchange: ExchangeFixture, alice: Wallet, bob: Wallet) {
    this.#exchange = exchange
    this.#alice = alice
    this.#bob = bob
  }

  async #receipt(hash: string): Promise<RecordedReceipt> {
    const exchange = this.#exchange
    const receipt = await exchange.provider.getTransactionReceipt(hash)
    if (receipt?.status !== 1) throw new Error(`transaction ${hash} did not succeed`)
    const chain = exchange.chain()
    const accounts = [this.#alice, this.#bob].map(addressOf).concat(exchange.shared.backstop)
    const before = receipt.blockNumber - 1
    const positions = await Promise.all(
      accounts.map(async (each) => [each, await chain.position(exchange.spec.trader, each, before)] as const),
    )
    chain.close()
    const own = receipt.logs.filter(({ address }) => address.toLowerCase() === exchange.spec.trader)
    return { logs: own.map(toChainLog), positions: new Map(positions) }
  }

  /** What `act` does is undone afterwards. */
  async #apart<Result>(act: () => Promise<Result>): Promise<Result> {
    const snapshot = await this.#exchange.rpc<string>('evm_snapshot')
    const result = await act()
    await this.#exchange.rpc('evm_revert', snapshot)
    return result
  }

  async #addBackstop(): Promise<void> {
    const exchange = this.#exchange
    const admin = await exchange.provider.getSigner(0)
    const { backstop } = exchange.shared
    await (await Backstop__factory.connect(backstop, admin).setBacked(exchange.spec.trader, true)).wait()
    await (await exchange.trader.connect(admin).setBackstop(backstop, e18('1000'))).wait()
    await exchange.deposit({ address: backstop }, '1000')
  }

  async #adjust(): Promise<RecordedReceipt> {
    const exchange = this.#exchange
    const second = await exchange.latestSecond()
    await exchange.rpc('evm_setNextBlockTimestamp', second + 1)
    const deadline = 4_000_000_000 as Seconds
    const signed = { account: addressOf(this.#alice), nonce: ADJUSTMENT_NONCE, deadline, amount: ADDED }
    const terms = { ...signed, removeMode: 'exact', minAmount: 0n as Quote } as const
    const signature = this.#alice.signingKey.sign(hashMarginAdjustment(terms, exchange.spec, keccak))
    const trader = exchange.trader.connect(await exchange.provider.getSigner(1))
    const none = { price: 0n, observedAt: 0, proof: '0x' }
    const struct = { ...signed, removeMode: 0, minAmount: 0n }
    const sent = await trader.adjustMargin(second * 1000, struct, none, signature.serialized)
    await sent.wait()
    return this.#receipt(sent.hash)
  }

  /** 30 s later the price is 80: a long from 100 at 5x has no equity left. */
  async #afterDrop(
    send: (
      trader: ExchangeFixture['trader'],
      terms: readonly [actionId: bigint, asOf: number],
      report: { price: bigint; observedAt: number; proof: string },
    ) => Promise<{ hash: string; wait(): Promise<unknown> }>,
  ): Promise<RecordedReceipt> {
    const exchange = this.#exchange
    const second = (await exchange.latestSecond()) + 30
    await exchange.rpc('evm_setNextBlockTimestamp', second)
    const observedAt = second * 1000
    const proof = await exchange.report(observedAt, DROPPED as Price)
    const { actionId } = await exchange.trader.clock()
    const trader = exchange.trader.connect(await exchange.provider.getSigner(1))
    const report = { price: DROPPED, observedAt, proof }
    const sent = await send(trader, [actionId + 1n, observedAt], report)
    await sent.wait()
    return this.#receipt(sent.hash)
  }

  async record(): Promise<RecordedReceipts> {
    const [alice, bob, exchange] = [addressOf(this.#alice), addressOf(this.#bob), this.#exchange]
    const { backstop } = exchange.shared
    for (const user of [this.#alice, this.#bob]) await exchange.deposit(user, '10000')
    const part = await exchange.part([
      { by: this.#alice, side: 'LONG', fill: 500, salt: 1n },
      { by: this.#bob, side: 'SHORT', fill: 500, salt: 2n },
    ])
    const batch = { ...(await this.#receipt(await exchange.send(part))), part }
    const inherit = () =>
      this.#afterDrop((trader, terms, report) => trader.inheritPosition(...terms, alice, report))
    const deleverage = (counterparty: Address) =>
      this.#afterDrop((trader, terms, report) =>
        trader.deleverage(...terms, alice, [counterparty], [400], report),
      )
    return {
      ...{ alice, bob, backstop, batch },
      adjustment: await this.#apart(() => this.#adjust()),
      failedInheritance: await this.#apart(inherit),
      inheritance: await this.#apart(async () => {
        await this.#addBackstop()
        return inherit()
      }),
      deleveraging: await this.#apart(() => deleverage(bob)),
      emptyDeleveraging: await this.#apart(() => deleverage(STRANGER)),
    }
  }
}

const toChainLog = ({ address, blockNumber, index, transactionHash, ...log }: Log): ChainLog => ({
  ...{ block: blockNumber, blockHash: log.blockHash, logIndex: index, txHash: transactionHash },
  ...{ address: address.toLowerCase() as Address, topics: log.topics, data: log.data },
})

export interface ReceiptFixture {
  readonly receipts: RecordedReceipts
  /** Decodes the logs as the indexer does, and derives whether the rules of `domain/` explain the positions. */
  eventsOf(receipt: RecordedReceipt, logs?: readonly ChainLog[]): ReceiptEvents
}

/** An account that no expectation names. */
export const STRANGER = `0x${'05'.repeat(20)}` as Address

export function useRecordedReceipts(): ReceiptFixture {
  const anvil = useAnvil({ chainId: CHAIN_ID })
  let exchange: ExchangeFixture
  let receipts: RecordedReceipts
  before(async () => {
    exchange = await ExchangeFixture.deploy(anvil.url)
    receipts = await new Recorder(exchange, await exchange.user('alice'), await exchange.user('bob')).record()
  })
  after(() => exchange.provider.destroy())
  return {
    get receipts() {
      return receipts
    },
    eventsOf: ({ positions }, logs = []) => {
      const { marginBank: bank, accountManager, forwarder } = exchange.shared
      const markets = new Map([[exchange.spec.trader, exchange.spec]])
      const facts = logs.map((log) => decodeLog(log, { bank, accountManager, forwarder, markets }))
      return facts.reduce((events, fact) => withFact(events, fact, positions), NO_EVENTS)
    },
  }
}

function withFact(
  events: ReceiptEvents,
  fact: ChainFact,
  before: ReadonlyMap<Address, Position>,
): ReceiptEvents {
  switch (fact.kind) {
    case 'undecodable':
      return { ...events, undecodable: fact.problem }
    case 'part_mined': {
      const movesPositions = movementOf(fact.spec, fact.settled, before) !== null
      return { ...events, settled: fact.settled, movesPositions }
    }
    case 'position_adjusted': {
      const movesPositions = explains(() => applyAdjusted(before, fact.event))
      return { ...events, adjusted: [...events.adjusted, fact.event], movesPositions }
    }
    case 'position_inherited': {
      const movesPositions = explains(() => applyInherited(before, fact.event))
      return { ...events, inherited: [...events.inherited, fact.event], movesPositions }
    }
    case 'inheritance_failed':
      return { ...events, inheritanceFailed: [...events.inheritanceFailed, fact.event] }
    case 'positions_deleveraged': {
      const movesPositions = explains(() => applyDeleveraged(before, fact.event))
      return { ...events, deleveraged: [...events.deleveraged, fact.event], movesPositions }
    }
    default:
      return events
  }
}

function explains(apply: () => unknown): boolean {
  try {
    apply()
    return true
  } catch {
    return false
  }
}

/** What the operator sent as this part. */
export const expectationOf = (part: SettlementPart): PartExpectation => ({
  ...{ kind: 'part', batchId: part.batchId, part: part.part, parts: part.parts, price: part.price },
  ...{ asOf: part.asOf, actionId: part.actionId },
  fills: part.fills.map((fill) => {
    if (!('order' in fill)) throw new Error('the recorded part has no forced orders')
    const { maker, salt, side } = fill.order
    return { maker, salt, side, isForced: false, steps: fill.fill, takerSteps: fill.taker }
  }),
})

// ---------------------------------------------------------------------- alterations of logs

/** The same log with other arguments, by name. */
export function altered(log: ChainLog, changes: Readonly<Record<string, unknown>>): ChainLog {
  const { fragment, args } = TRADER.parseLog(log) as LogDescription
  const values = fragment.inputs.map(({ name }, at) => (name in changes ? changes[name] : args[at]))
  return { ...log, ...TRADER.encodeEventLog(fragment, values) }
}

/** `docs/audit/encoding.md` has the bytes of the data of `BatchSettled`. */
const HEADER_BYTES = 80
const COUNT_AT = 20
const RECORD_BYTES = 48
/** Offsets in a record. */
export const FIELD = { maker: 0, forced: 29, fill: 30, freeDelta: 36 } as const

/** The records of a settled part that are kept, in this order, by their place in the part; with bytes that are written over. */
export interface AlteredRecord {
  readonly of: number
  readonly at?: number
  readonly bytes?: Uint8Array
}

export function alteredPart(log: ChainLog, records: readonly AlteredRecord[]): ChainLog {
  const coder = AbiCoder.defaultAbiCoder()
  const packed = Buffer.from(String(coder.decode(['bytes'], log.data)[0]).slice(2), 'hex')
  const header = Buffer.from(packed.subarray(0, HEADER_BYTES))
  header.writeUInt16BE(records.length, COUNT_AT)
  const copies = records.map(({ of, at = 0, bytes = new Uint8Array() }) => {
    const start = HEADER_BYTES + of * RECORD_BYTES
    const copy = Buffer.from(packed.subarray(start, start + RECORD_BYTES))
    copy.set(bytes, at)
    return copy
  })
  return { ...log, data: coder.encode(['bytes'], [Buffer.concat([header, ...copies])]) }
}
