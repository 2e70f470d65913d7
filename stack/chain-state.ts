/** The file in which anvil keeps the chain, and what must be put right in it before anvil reads it again. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { StackError } from './options.ts'

interface Block {
  readonly header: { readonly number: string; readonly timestamp: string }
}

interface ChainState {
  readonly blocks: readonly Block[]
}

/**
 * Every start of anvil adds a genesis block of its own to the file, and which of them it takes for block 0 the next time is chance:
 * only the first one is kept, so that the chain stays the one that the database follows.
 */
export function repairChainState(path: string): void {
  if (!existsSync(path)) return
  const state = read(path)
  const [genesis, ...strangers] = state.blocks
    .filter(({ header }) => Number(header.number) === 0)
    .sort((a, b) => Number(a.header.timestamp) - Number(b.header.timestamp))
  if (genesis === undefined || strangers.length === 0) return
  const blocks = state.blocks.filter((block) => !strangers.includes(block))
  writeFileSync(`${path}.new`, JSON.stringify({ ...state, blocks }))
  renameSync(`${path}.new`, path)
}

function read(path: string): ChainState {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ChainState
  } catch (error) {
    throw new StackError(
      `${path} cannot be read (${(error as Error).message}): the chain is lost, start again with --fresh`,
    )
  }
}
