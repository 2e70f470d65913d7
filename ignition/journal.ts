/**
 * Brings the journal of an interrupted deployment up to date with the chain. Ignition goes on by itself only where every
 * transaction that was mined is noted as such: one left open below others is taken for somebody else's.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import type { Provider, TransactionReceipt } from 'ethers'
import { folderOf } from './deployment.ts'

interface Message {
  readonly type: string
  readonly futureId: string
  readonly from?: string
  readonly networkInteraction?: { readonly id: number }
  readonly nonce?: number
  readonly transaction?: { readonly hash: string }
}

/** A contract or call that has begun and is not complete. */
export interface Open {
  readonly future: string
  readonly sender: string
  /** Null: it was begun, and nothing was asked of the chain yet. */
  readonly interaction: number | null
  /** Null: no transaction was prepared. */
  readonly nonce: number | null
  /** Null: none was noted as sent. */
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

// ---------------------------------------------------------------------- what the chain has of it

/** Hashes by nonce of a sender's transactions that were mined: of the nonces wanted, searched from the newest block backwards. */
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

// ---------------------------------------------------------------------- what is noted

/** As Ignition writes: a line begins with its end, so that one cut short ends at the next. */
const note = (deploymentId: string, message: object): void =>
  appendFileSync(pathOf(deploymentId), `\n${JSON.stringify(message)}`)

/** Forgets what was begun and of which the chain knows nothing. */
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
