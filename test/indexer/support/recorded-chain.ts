/**
 * A chain of mined parts that is served from memory. One market's parts are settled by the contracts on anvil; its logs are then copied for
 * further markets, whose contracts have other addresses. A log of a part does not name its market, so each copy is what that
 * market's contract would emit.
 */
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { SettlementPart } from '../../../domain/settlement/settlement.ts'
import type { Address, OrderHash } from '../../../domain/units.ts'
import type { FollowOptions } from '../../../indexer/ingest/follow.ts'
import type { Chain, ChainBlock, ChainLog } from '../../../indexer/ports.ts'
import { startAnvil } from '../../../stack/anvil.ts'
import { addressOf, CHAIN_ID, ExchangeFixture, type FillInput } from './exchange-fixture.ts'

const DEPOSIT = '1000000'

export interface Recording {
  readonly spec: MarketSpec
  readonly options: FollowOptions
  readonly deposits: readonly ChainLog[]
  /** In the order of the chain. */
  readonly parts: readonly { readonly part: SettlementPart; readonly log: ChainLog }[]
  readonly timestamp: number
}

/** Settles `count` parts on a chain of its own and returns their logs. Each account has one order in every part. */
export async function recordParts(count: number, accounts: number): Promise<Recording> {
  const anvil = await startAnvil({ chainId: CHAIN_ID })
  const exchange = await ExchangeFixture.deploy(anvil.url)
  const chain = exchange.chain()
  try {
    const users = await Promise.all(Array.from({ length: accounts }, (_, at) => exchange.user(`user ${at}`)))
    for (const user of users) await exchange.deposit(user, DEPOSIT)
    const parts: SettlementPart[] = []
    for (let number = 0; number < count; number++) {
      const fills = users.map((by, at): FillInput => {
        const isLong = (at + number) % 2 === 0
        return { by, side: isLong ? 'LONG' : 'SHORT', fill: 100 + number, salt: BigInt(number + 1) }
      })
      const part = await exchange.part(fills)
      await exchange.send(part)
      parts.push(part)
    }
    const { number, timestamp } = await chain.head()
    const from = exchange.startBlock
    const deposits = await chain.logsBetween(from, number, [exchange.shared.marginBank])
    const settled = await chain.logsBetween(from, number, [exchange.spec.trader])
    const mined = settled.slice(-count).map((log, at) => ({ part: parts[at] as SettlementPart, log }))
    return {
      spec: exchange.spec,
      options: { ...exchange.followOptions(), startBlock: 1 },
      deposits,
      parts: mined,
      timestamp,
    }
  } finally {
    chain.close()
    exchange.provider.destroy()
    await anvil.stop()
  }
}

/** The market's copy with this number. The first one is the recorded market itself. */
export function copyOf(spec: MarketSpec, number: number): MarketSpec {
  if (number === 0) return spec
  const marketId = (spec.marketId + number) as MarketSpec['marketId']
  const trader = addressOf({ address: word(marketId, 20) })
  return { ...spec, marketId, trader, symbol: `${spec.symbol}-${number}` }
}

const word = (value: number, bytes: number): `0x${string}` =>
  `0x${(value + 1).toString(16).padStart(2 * bytes, '0')}`

export const txHashOf = (market: number, part: number): string => word(1_000_000 * market + part, 32)

/** The market's copy of a part. Orders of different markets have different hashes. */
export function copyPart(part: SettlementPart, spec: MarketSpec): SettlementPart {
  const fills = part.fills.map((fill) => {
    if (!('order' in fill)) return fill
    const hash = `${word(spec.marketId, 4)}${fill.order.hash.slice(10)}` as OrderHash
    return { ...fill, order: { ...fill.order, hash } }
  })
  return { ...part, marketId: spec.marketId, fills }
}

const unread = (): Promise<never> =>
  Promise.reject(new Error('the rules explain every recorded fact: the chain must not be read'))

/** The chain of a test that records blocks by itself. */
export const UNREAD_CHAIN: Chain = {
  chainId: unread,
  head: unread,
  block: unread,
  logsOf: unread,
  logsBetween: unread,
  hasSucceeded: unread,
  position: unread,
}

/** Blocks that a benchmark or a test appends one at a time, and may replace. */
export class MemoryChain implements Chain {
  readonly #blocks: ChainBlock[] = []
  readonly #logs = new Map<string, readonly ChainLog[]>()
  #hashes = 0

  append(timestamp: number, logs: readonly Pick<ChainLog, 'txHash' | 'address' | 'topics' | 'data'>[]): void {
    const number = this.#blocks.length
    const hash = word(++this.#hashes, 32)
    const parentHash = this.#blocks.at(-1)?.hash ?? word(0, 32)
    const transactions = [...new Set(logs.map(({ txHash }) => txHash))]
    this.#blocks.push({ number, hash, parentHash, timestamp, transactions })
    this.#logs.set(
      hash,
      logs.map((log, logIndex) => ({ ...log, block: number, blockHash: hash, logIndex })),
    )
  }

  /** Drops the newest blocks: those that follow are of another fork. */
  fork(depth: number): void {
    this.#blocks.splice(this.#blocks.length - depth)
  }

  async chainId(): Promise<number> {
    return CHAIN_ID
  }

  async head(): Promise<ChainBlock> {
    return this.#blocks.at(-1) as ChainBlock
  }

  async block(number: number): Promise<ChainBlock | null> {
    return this.#blocks[number] ?? null
  }

  async logsOf(blockHash: string, addresses: readonly Address[]): Promise<ChainLog[]> {
    return (this.#logs.get(blockHash) ?? []).filter(({ address }) => addresses.includes(address))
  }

  async logsBetween(from: number, to: number, addresses: readonly Address[]): Promise<ChainLog[]> {
    const blocks = this.#blocks.slice(from, to + 1)
    return (await Promise.all(blocks.map(({ hash }) => this.logsOf(hash, addresses)))).flat()
  }

  async hasSucceeded(): Promise<boolean> {
    return true
  }

  position = unread
}
