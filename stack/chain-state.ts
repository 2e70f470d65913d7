/** Repairs anvil's state file before anvil loads it. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { StackError } from './options.ts'

interface Block {
  readonly header: { readonly number: string; readonly timestamp: string }
}

interface ChainState {
  readonly blocks: readonly Block[]
}

/**
 * Every start of anvil adds a genesis block to the file, and the next start picks one of them at random as block 0. This keeps only the
 * oldest, so that block 0 stays the one that the database stores.
 */
export function repairChainState(path: string): void {
  if (!existsSync(path)) return
  const state = read(path)
  const [genesis, ...duplicates] = state.blocks
    .filter(({ header }) => Number(header.number) === 0)
    .sort((a, b) => Number(a.header.timestamp) - Number(b.header.timestamp))
  if (genesis === undefined || duplicates.length === 0) return
  const blocks = state.blocks.filter((block) => !duplicates.includes(block))
  writeFileSync(`${path}.new`, JSON.stringify({ ...state, blocks }))
  renameSync(`${path}.new`, path)
}

function read(path: string): ChainState {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ChainState
  } catch (error) {
    throw new StackError(
      `${path} is not a chain state (${(error as Error).message}): the chain is lost, start again with --fresh`,
    )
  }
}
