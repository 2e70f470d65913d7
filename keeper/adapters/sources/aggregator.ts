/** Prices of Chainlink-style aggregators, by the rules of the AggregatorOracle contract: the round is the proof. */
import { observationTime, type SourceAnswer } from '../../../domain/prices/aggregate.ts'
import type { Address } from '../../../domain/units.ts'
import { IAggregator__factory } from '../../../typechain-types/factories/interfaces/IAggregator__factory.ts'
import type { PriceSource } from '../../ports.ts'
import type { AggregatorTerms } from '../../price-file.ts'

type Answer = Omit<SourceAnswer, 'source'>

const AGGREGATOR = IAggregator__factory.createInterface()
const PRICE_DECIMALS = 18n
const ROUND_DIGITS = 20

export interface AggregatorOptions {
  readonly rpcUrl: string
  readonly timeoutMs: number
}

const fault = (reason: string): Answer => ({ reading: null, fault: reason })

export function createAggregatorSource(
  { address, pollMs, ...bounds }: AggregatorTerms,
  options: AggregatorOptions,
): PriceSource {
  let decimals: bigint | null = null
  let answer: Answer = fault('NOT_POLLED')
  let isStopped = false
  let timer: NodeJS.Timeout | undefined

  async function poll(): Promise<void> {
    try {
      const known = decimals ?? (await call<'decimals', [bigint]>(options, address, 'decimals'))[0]
      decimals = known
      answer = toAnswer(await call<'latestRoundData', Round>(options, address, 'latestRoundData'), known)
    } catch (error) {
      answer = fault((error as Error).name === 'TimeoutError' ? 'TIMED_OUT' : 'NO_ROUND')
    }
    if (!isStopped) timer = setTimeout(() => void poll(), pollMs)
  }
  void poll()
  return {
    name: bounds.name,
    maxAge: bounds.maxAge,
    maxDeviation: bounds.maxDeviation,
    answer: () => answer,
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

type Round = [id: bigint, answer: bigint, startedAt: bigint, updatedAt: bigint, answeredIn: bigint]

/** The contract accepts a round only if it is complete and its answer positive. */
function toAnswer([id, value, , updatedAt, answeredIn]: Round, decimals: bigint): Answer {
  if (decimals > PRICE_DECIMALS) return fault('DECIMALS')
  if (updatedAt === 0n || answeredIn < id) return fault('ROUND_INCOMPLETE')
  const observedAt = observationTime(Number(updatedAt) * 1_000)
  if (observedAt === null) return fault('NO_TIME')
  const reading = {
    price: value * 10n ** (PRICE_DECIMALS - decimals),
    observedAt,
    round: `0x${id.toString(16).padStart(ROUND_DIGITS, '0')}` as const,
  }
  return { reading, fault: null }
}

/** Throws if the node does not answer with a result. */
async function call<Name extends 'decimals' | 'latestRoundData', Result>(
  { rpcUrl, timeoutMs }: AggregatorOptions,
  to: Address,
  name: Name,
): Promise<Result> {
  const data = AGGREGATOR.encodeFunctionData(name as 'decimals')
  const response = await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_call', params: [{ to, data }, 'latest'] }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  const { result } = (await response.json()) as { result?: string }
  if (result === undefined) throw new Error('the node returned no result')
  return [...AGGREGATOR.decodeFunctionResult(name as 'decimals', result)] as Result
}
