/** Decodes the effects of a settlement, or the reason of its revert, from the receipt of its transaction. Read-only. */
import {
  isHexString,
  type Log,
  type LogDescription,
  type Provider,
  Result,
  type TransactionReceipt,
} from 'ethers'
import type { HardhatRuntimeEnvironment } from 'hardhat/types/hre'
import { type MarketSpec, priceOf, quantityOf } from '../domain/market/market.ts'
import { NO_EVENTS, type ReceiptEvents } from '../domain/settlement/receipt.ts'
import { reconcile } from '../domain/settlement/reconcile.ts'
import type { BatchSettled, SettledFill } from '../domain/settlement/settlement.ts'
import { BATCH_SETTLED_TOPIC, decodeBatchSettled } from '../domain/settlement/settlement-codec.ts'
import type { Price } from '../domain/units.ts'
import { decodeTraderLog } from '../indexer/ingest/decode/isolated-trader.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { KNOWN, providerOf, reasonOf, specOf } from './chain.ts'
import { percent, price, print, timeOfMillis, timeOfSeconds, units, usdm } from './print.ts'
import { expectationOf } from './sent.ts'

export async function decodeSettlement(
  { tx }: { tx: string },
  hre: HardhatRuntimeEnvironment,
): Promise<void> {
  const provider = await providerOf(hre)
  if (!isHexString(tx, 32))
    throw new Error(`--tx must be the hash of a transaction, 32 bytes; received "${tx}"`)
  const receipt = await provider.getTransactionReceipt(tx)
  if (receipt === null) throw new Error(`--tx: ${tx} is not mined on this chain`)
  const spec = await marketOf(provider, receipt.to)
  await printTransaction(provider, receipt, spec)
  const events = receipt.logs.map((log) => ({ log, parsed: KNOWN.parseLog(log) }))
  for (const { log, parsed } of events) printLog(log, parsed, spec)
  if (receipt.status === 1 && spec !== null) await printVerdict(provider, receipt, spec)
}

/** The market that the transaction was sent to; null if it was sent elsewhere. */
async function marketOf(provider: Provider, to: string | null): Promise<MarketSpec | null> {
  try {
    return to === null ? null : await specOf(IsolatedTrader__factory.connect(to, { provider }))
  } catch {
    return null
  }
}

async function printTransaction(
  provider: Provider,
  receipt: TransactionReceipt,
  spec: MarketSpec | null,
): Promise<void> {
  const { hash, to, from, blockNumber, gasUsed, gasPrice, status } = receipt
  const block = await provider.getBlock(blockNumber)
  const sent = await provider.getTransaction(hash)
  const called = sent === null ? null : KNOWN.parseTransaction({ data: sent.data })
  const failure = status === 1 ? null : await revertOf(provider, hash)
  print(`transaction ${hash}`, {
    block: `${blockNumber}, ${timeOfSeconds(block?.timestamp ?? 0)}`,
    from,
    to: `${to}${spec === null ? '' : ` (market ${spec.marketId}, ${spec.kind})`}`,
    call: called?.name ?? 'unknown',
    status: failure === null ? 'mined' : 'reverted: nothing has moved',
    ...(failure !== null && { error: failure.error, culprit: failure.culprit }),
    'gas used': gasUsed,
    fee: `${usdm(gasUsed * gasPrice).replace('USDM', 'ETH')}`,
  })
}

// ---------------------------------------------------------------------- a revert

/** The revert reason, from a call on the state of the previous block; that state may differ from the one the transaction saw. */
async function revertOf(provider: Provider, hash: string): Promise<{ error: string; culprit: string }> {
  const sent = await provider.getTransaction(hash)
  try {
    const { to, from, data, gasLimit, blockNumber } = sent ?? {}
    await provider.call({ to, from, data, gasLimit, blockTag: (blockNumber ?? 1) - 1 } as never)
    return {
      error: 'none when it is run again',
      culprit: 'unknown: what came before it in its block, or its gas',
    }
  } catch (error) {
    return { error: reasonOf(error), culprit: culpritOf((error as { data?: string }).data ?? '0x') }
  }
}

/** The first arguments of an error name its culprit: an order's maker and salt, or an account. */
function culpritOf(data: string): string {
  const parsed = data.length < 10 ? null : KNOWN.parseError(data)
  const [first, second] = parsed?.fragment.inputs.map(({ name }) => name) ?? []
  if (parsed === null) return 'unknown'
  if (first === 'maker' && second === 'salt') return `the order ${parsed.args[1]} of ${parsed.args[0]}`
  if (first === 'account') return `the account ${parsed.args[0]}`
  return 'none: the error is about the call as a whole'
}

// ---------------------------------------------------------------------- logs

function printLog(log: Log, parsed: LogDescription | null, spec: MarketSpec | null): void {
  if (log.topics[0] === BATCH_SETTLED_TOPIC && spec !== null) {
    printBatch(decodeBatchSettled(log.topics, log.data, spec), spec)
    return
  }
  const title = `${parsed?.name ?? `unknown event ${log.topics[0]}`} (${log.address})`
  const said = parsed?.fragment.inputs.map(({ name }, index) => [name, wordsOf(name, parsed.args[index])])
  print(title, said?.length ? Object.fromEntries(said) : { data: log.data })
}

const AMOUNTS =
  /^(amount|pending|margin|foldedMargin|freeDelta|entryNotional|needed|available|payout|pool|owed|deficit|value|paid|unpaid|cap)$/
const PRICES = /^(price|oraclePrice)$/
const TIMES = /^(asOf|validUntil|activeFrom|.+(At|Until|From))$/
/** Times of the bank and of session keys are seconds, all others milliseconds. */
const SECONDS_END = 10n ** 11n

/** A field of an event in its unit, which follows from its name in these contracts. */
function wordsOf(name: string, value: unknown): string {
  if (value instanceof Result) {
    const entries = Object.entries(value.toObject())
    const isList = entries.length === 0 || entries.some(([key]) => key === '_')
    const words = isList
      ? [...value].map((each) => wordsOf(name, each))
      : entries.map(([key, each]) => `${key} ${wordsOf(key, each)}`)
    return words.join(', ') || 'none'
  }
  if (typeof value !== 'bigint') return String(value)
  if (AMOUNTS.test(name)) return usdm(value)
  if (PRICES.test(name)) return price(value)
  if (TIMES.test(name)) return value < SECONDS_END ? timeOfSeconds(value) : timeOfMillis(value)
  return value.toString()
}

function printBatch({ fills, ...batch }: BatchSettled, spec: MarketSpec): void {
  const rate = (fraction: bigint): string => percent(fraction / 10n ** 12n)
  print(`batch ${batch.batchId} of market ${spec.marketId}, part ${batch.part} of ${batch.parts}`, {
    action: batch.actionId,
    'as of': timeOfMillis(batch.asOf),
    'clearing price': price(priceOf(spec, batch.price)),
    'oracle price': `${price(batch.oraclePrice)}, observed ${timeOfMillis(batch.observedAt)}`,
    'funding index': `${batch.fundingIndex} wei per step held long`,
    'maker and taker rate': `${rate(batch.makerFee)}, ${rate(batch.takerFee)}`,
    orders: fills.length,
  })
  for (const fill of fills) console.log(`  ${sentenceOf(fill, spec)}`)
}

function sentenceOf(fill: SettledFill, spec: MarketSpec): string {
  const name = fill.isForced ? `liquidation ${fill.salt}` : `salt ${fill.salt}`
  const quantity = units(quantityOf(spec, fill.fill))
  const share = fill.taker === fill.fill ? 'taker' : fill.taker === 0 ? 'maker' : 'maker and taker'
  const capped = fill.isFeeCapped ? ' (capped)' : ''
  const rest = fill.isDead ? 'complete' : 'partly filled'
  const state = fill.isForced ? '' : `, ${rest}`
  const fee = `fee ${usdm(fill.fee)}${capped}`
  return `${fill.maker} ${name}: ${fill.side} ${quantity} as ${share}, ${fee}, free ${usdm(fill.freeDelta)}${state}`
}

// ---------------------------------------------------------------------- the verdict

/** Reconciles the receipt with the calldata by the indexer's rules. */
async function printVerdict(
  provider: Provider,
  receipt: TransactionReceipt,
  spec: MarketSpec,
): Promise<void> {
  const sent = await provider.getTransaction(receipt.hash)
  const trader = IsolatedTrader__factory.connect(spec.trader, { provider })
  const [{ backstop }, { price }] = [await trader.riskTerms(), await trader.ending()]
  const expected = expectationOf(sent?.data ?? '0x', { backstop, finalPrice: price as Price })
  if (expected === null) return
  const verdict = reconcile(eventsOf(receipt, spec), expected)
  print('verdict', {
    failure_kind: verdict.ok ? 'none: it did what was asked' : verdict.refusal.kind,
    ...(!verdict.ok && { reason: verdict.refusal.reason }),
  })
}

function eventsOf(receipt: TransactionReceipt, spec: MarketSpec): ReceiptEvents {
  const logs = receipt.logs.filter(({ address }) => address.toLowerCase() === spec.trader)
  try {
    return logs.reduce<ReceiptEvents>((events, log) => withLog(events, log, spec), NO_EVENTS)
  } catch (error) {
    return { ...NO_EVENTS, undecodable: (error as Error).message }
  }
}

function withLog(events: ReceiptEvents, log: Log, spec: MarketSpec): ReceiptEvents {
  const fact = decodeTraderLog(log, spec)
  switch (fact.kind) {
    case 'part_mined':
      return { ...events, settled: fact.settled }
    case 'position_inherited':
      return { ...events, inherited: [...events.inherited, fact.event] }
    case 'inheritance_failed':
      return { ...events, inheritanceFailed: [...events.inheritanceFailed, fact.event] }
    case 'positions_deleveraged':
      return { ...events, deleveraged: [...events.deleveraged, fact.event] }
    case 'position_adjusted':
      return { ...events, adjusted: [...events.adjusted, fact.event] }
    case 'funding_updated':
      return { ...events, fundingUpdated: [...events.fundingUpdated, fact.event] }
    case 'market_ended':
      return { ...events, ended: [...events.ended, fact.event] }
    default:
      return events
  }
}
