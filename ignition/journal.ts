/**
 * Updates Ignition's journal of an interrupted deployment from the chain. Ignition resumes only if every mined transaction has
 * an entry: it rejects a mined transaction without one as foreign.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import type { Provider, TransactionReceipt } from 'ethers'
import type { CreationHashes } from './creations.ts'
import { folderOf } from './deployment.ts'

interface Message {
  readonly type: string
  readonly futureId: string
  readonly from?: string
  readonly networkInteraction?: { readonly id: number }
  readonly nonce?: number
  readonly transaction?: { readonly hash: string }
  readonly hash?: string
  readonly receipt?: { readonly contractAddress?: string }
}

/** A contract or call of the journal that has started and is not complete. */
export interface Open {
  readonly future: string
  readonly sender: string
  /** Null: started, without an interaction with the chain. */
  readonly interaction: number | null
  /** Null: no transaction was prepared. */
  readonly nonce: number | null
  /** Null: no transaction was recorded as sent. */
  readonly hash: string | null
  readonly isConfirmed: boolean
}

const pathOf = (deploymentId: string): string => `${folderOf(deploymentId)}/journal.jsonl`

const BEGUN = /^(DEPLOYMENT|CALL|SEND_DATA)_EXECUTION_STATE_INITIALIZE$/
const ENDED = /^(WIPE_APPLY|\w+_EXECUTION_STATE_COMPLETE)$/
const VOIDED = /^ONCHAIN_INTERACTION_(DROPPED|REPLACED_BY_USER|TIMEOUT)$/

export function openIn(deploymentId: string): readonly Open[] {
  const path = pathOf(deploymentId)
  if (!existsSync(path)) throw new Error(`there is no deployment "${deploymentId}" (${path} is missing)`)
  const open = new Map<string, Open>()
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line !== '') follow(open, JSON.parse(line))
  }
  return [...open.values()]
}

function follow(open: Map<string, Open>, message: Message): void {
  const { type, futureId: future, from, networkInteraction, nonce = null, transaction } = message
  const none = { interaction: null, nonce: null, hash: null, isConfirmed: false }
  if (BEGUN.test(type)) open.set(future, { future, sender: from ?? '', ...none })
  if (ENDED.test(type)) open.delete(future)
  const known = open.get(future)
  if (known === undefined) return
  const change = (fields: Partial<Open>) => open.set(future, { ...known, ...fields })
  if (type === 'NETWORK_INTERACTION_REQUEST') change({ ...none, interaction: networkInteraction?.id ?? null })
  if (type === 'TRANSACTION_PREPARE_SEND') change({ nonce })
  if (type === 'TRANSACTION_SEND') change({ nonce, hash: transaction?.hash ?? null })
  if (type === 'TRANSACTION_CONFIRM') change({ isConfirmed: true })
  if (VOIDED.test(type)) change({ nonce: null, hash: null })
}

/** Transactions that created contracts, by address in lower case. */
export function creationHashesOf(deploymentId: string): CreationHashes {
  const path = pathOf(deploymentId)
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  return new Map(
    lines.flatMap((line) => {
      const { type, hash, receipt }: Message = line === '' ? { type: '', futureId: '' } : JSON.parse(line)
      const address = receipt?.contractAddress
      if (type !== 'TRANSACTION_CONFIRM' || hash === undefined || address === undefined) return []
      return [[address.toLowerCase(), hash] as const]
    }),
  )
}

// ---------------------------------------------------------------------- mined transactions

/** Hashes by nonce of a sender's mined transactions with these nonces, searched from the newest block backwards. */
export async function minedBy(
  provider: Provider,
  sender: string,
  nonces: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const end = await provider.getTransactionCount(sender)
  const wanted = new Set(nonces.filter((nonce) => nonce < end))
  const found = new Map<number, string>()
  for (let number = await provider.getBlockNumber(); number > 0 && found.size < wanted.size; number--) {
    const block = await provider.getBlock(number, true)
    for (const { from, nonce, hash } of block?.prefetchedTransactions ?? []) {
      if (from.toLowerCase() === sender.toLowerCase() && wanted.has(nonce)) found.set(nonce, hash)
    }
  }
  return found
}

// ---------------------------------------------------------------------- journal entries

/** Like Ignition, writes the newline before the entry, so that a truncated last line does not merge with the next entry. */
const note = (deploymentId: string, message: object): void =>
  appendFileSync(pathOf(deploymentId), `\n${JSON.stringify(message)}`)

/** Removes an entry that never reached the chain. */
export const noteWiped = (deploymentId: string, { future }: Open): void =>
  note(deploymentId, { futureId: future, type: 'WIPE_APPLY' })

export function noteMined(deploymentId: string, open: Open, receipt: TransactionReceipt): void {
  const { hash, blockHash, blockNumber, contractAddress, logs, status } = receipt
  note(deploymentId, {
    futureId: open.future,
    hash,
    networkInteractionId: open.interaction,
    receipt: {
      blockHash,
      blockNumber,
      ...(contractAddress !== null && { contractAddress }),
      logs: logs.map(({ address, data, index, topics }) => ({ address, data, logIndex: index, topics })),
      status: status === 1 ? 'SUCCESS' : 'FAILURE',
    },
    type: 'TRANSACTION_CONFIRM',
  })
}
