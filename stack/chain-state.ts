/** Anvil's state file: repaired before anvil loads it, and bounded, because anvil writes all of it every five seconds. */
import { statSync } from 'node:fs'
import { readText, unusable, writeWhole } from './data-dir.ts'
import { StackError } from './options.ts'
import type { Service } from './services.ts'

interface Block {
  readonly header: { readonly number: string; readonly timestamp: string }
}

interface Transaction {
  readonly block_number: number
}

interface ChainState {
  readonly blocks: readonly Block[]
  readonly transactions?: readonly Transaction[]
}

/** Blocks and transactions that a start keeps when the file is larger: about four hours without trading. */
const KEPT_BYTES = 24_000_000
/** Size at which the running chain is started again with those. */
const MOST_BYTES = 128_000_000
const WATCH_MS = 60_000

/**
 * Keeps only the oldest genesis block, which the database stores: each start of anvil adds one and picks any as block
 * 0. Keeps the newest blocks up to `keptBytes`.
 */
export function repairChainState(path: string, keptBytes = KEPT_BYTES): void {
  const text = readText(path, LOST)
  if (text === null) return
  const state = parse(path, text)
  const [genesis] = state.blocks
    .filter((block) => numberOf(block) === 0)
    .sort((a, b) => Number(a.header.timestamp) - Number(b.header.timestamp))
  const from = firstKept(state, keptBytes)
  const blocks = state.blocks.filter((block) => block === genesis || numberOf(block) >= from)
  if (blocks.length === state.blocks.length) return
  const { transactions = [] } = state
  const kept = transactions.filter(({ block_number }) => block_number >= from)
  writeWhole(path, JSON.stringify({ ...state, blocks, transactions: kept }))
}

/** Numbers are hexadecimal texts, or integers. */
const isNumber = (value: unknown): boolean =>
  value !== null && value !== '' && Number.isInteger(Number(value))
const isBlock = (block: Partial<Block> | null): boolean =>
  isNumber(block?.header?.number ?? null) && isNumber(block?.header?.timestamp ?? null)
const isTransaction = (transaction: Partial<Transaction> | null): boolean =>
  isNumber(transaction?.block_number ?? null)

const numberOf = ({ header }: Block): number => Number(header.number)

/** The lowest number above 0 such that its block and all newer ones, with their transactions, take at most so many bytes. */
function firstKept({ blocks, transactions = [] }: ChainState, bytes: number): number {
  const sizes = new Map<number, number>()
  const add = (number: number, content: object): void => {
    sizes.set(number, (sizes.get(number) ?? 0) + JSON.stringify(content).length)
  }
  for (const block of blocks) if (numberOf(block) > 0) add(numberOf(block), block)
  for (const transaction of transactions) add(transaction.block_number, transaction)
  let left = bytes
  for (const [number, size] of [...sizes].sort(([a], [b]) => b - a)) {
    left -= size
    if (left < 0) return number + 1
  }
  return 1
}

/** Starts the chain again, as after a crash, when its state has grown too large. Returns what ends the watch. */
export function boundChainState(
  path: string,
  chain: Pick<Service, 'restart'>,
  report: (line: string) => void,
  { mostBytes = MOST_BYTES, everyMs = WATCH_MS } = {},
): () => Promise<void> {
  let restarting = Promise.resolve()
  const timer = setInterval(() => {
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) <= mostBytes) return
    report(`${path} is larger than ${mostBytes / 1e6} MB; restarting the chain with its newest blocks`)
    restarting = restarting.then(() => chain.restart())
  }, everyMs)
  timer.unref()
  return () => {
    clearInterval(timer)
    return restarting
  }
}

const LOST = 'without it the chain is lost: start again with --fresh'

function parse(path: string, text: string): ChainState {
  let state: ChainState
  try {
    state = JSON.parse(text) as ChainState
  } catch (error) {
    throw unusable(path, error, 'it is not a chain state, and the chain is lost: start again with --fresh')
  }
  if (!Array.isArray(state?.blocks))
    throw new StackError(`${path} has no blocks, so the chain is lost: start again with --fresh`)
  if (state.blocks.every(isBlock) && (state.transactions ?? []).every(isTransaction)) return state
  throw new StackError(`${path} has damaged blocks, so the chain is lost: start again with --fresh`)
}
