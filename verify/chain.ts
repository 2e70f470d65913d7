/** Reads the settlements of a batch from a node. */
import { JsonRpcProvider, type TransactionReceipt } from 'ethers'
import type { BatchStatement } from '../domain/proof/batch-statement.ts'
import type { BatchProof, MinedPart } from '../domain/proof/verify.ts'
import { differences } from '../domain/proof/wire.ts'
import { decodeSettleBatch } from '../domain/settlement/decode-settlement.ts'
import type { BatchSettled } from '../domain/settlement/settlement.ts'
import { BATCH_SETTLED_TOPIC, decodeBatchSettled } from '../domain/settlement/settlement-codec.ts'
import type { Address } from '../domain/units.ts'
import { IIsolatedTrader__factory } from '../typechain-types/factories/interfaces/IIsolatedTrader__factory.ts'

const MARKET = IIsolatedTrader__factory.createInterface()
const KINDS = ['perpetual', 'future', 'binary_future']

export interface ChainState {
  /** By transaction hash: the settlements that the chain has. */
  readonly mined: ReadonlyMap<string, MinedPart>
  /** Where the stated grid differs from that of the market's contract. */
  readonly differences: readonly string[]
}

export async function readChain(
  url: string,
  { parts }: BatchProof,
  { market }: BatchStatement,
): Promise<ChainState> {
  const provider = new JsonRpcProvider(url, undefined, { staticNetwork: true, batchMaxCount: 1 })
  try {
    const { chainId } = await provider.getNetwork()
    const mined = new Map<string, MinedPart>()
    for (const { transaction_hash: hash } of parts) {
      if (hash === null) continue
      const [sent, receipt] = [
        await provider.getTransaction(hash),
        await provider.getTransactionReceipt(hash),
      ]
      const call = sent === null ? null : MARKET.parseTransaction({ data: sent.data })
      if (receipt === null || call?.name !== 'settleBatch') continue
      mined.set(hash, {
        chainId: Number(chainId),
        to: String(receipt.to).toLowerCase() as Address,
        sent: decodeSettleBatch(String(call.args.part), market.marketId),
        settled: settledOf(receipt, market),
      })
    }
    const { marketId, kind, tick, step } = await IIsolatedTrader__factory.connect(market.trader, {
      provider,
    }).grid()
    const grid = {
      market_id: Number(marketId),
      kind: KINDS[Number(kind)],
      tick: String(tick),
      step: String(step),
    }
    const stated = {
      market_id: market.marketId,
      kind: market.kind,
      tick: String(market.tick),
      step: String(market.step),
    }
    return { mined, differences: differences('statement.market', stated, grid) }
  } finally {
    provider.destroy()
  }
}

/** Null if the transaction was reverted. */
function settledOf({ logs, to }: TransactionReceipt, market: BatchStatement['market']): BatchSettled | null {
  const log = logs.find(({ address, topics }) => topics[0] === BATCH_SETTLED_TOPIC && address === to)
  const spec = { ...market, chainId: BigInt(market.chainId) }
  return log === undefined ? null : decodeBatchSettled(log.topics, log.data, spec)
}
