/**
 * Finds the transactions that created the contracts of a deployment, by Ignition's journal, because no node method
 * finds them.
 */
import { getCreateAddress, type Provider, Transaction, type TransactionResponse } from 'ethers'
import { text } from './finding.ts'

export interface Creation {
  readonly hash: string
  readonly block: number
  /** Unix seconds of that block. */
  readonly time: number
  readonly sender: string
  /** Creation code, then the constructor's arguments. */
  readonly input: string
}

/** Hashes by address in lower case. */
export type CreationHashes = ReadonlyMap<string, string>

/** By address in lower case: the creation, or the reason why it is unknown. */
export type Creations = ReadonlyMap<string, Creation | string>

const UNKNOWN = 'unknown: journal.jsonl of the deployment names no transaction that created this address'

export async function creationsOf(
  provider: Provider,
  addresses: readonly string[],
  hashes: CreationHashes,
): Promise<Creations> {
  const creations = new Map<string, Creation | string>()
  for (const address of addresses.map(text)) {
    const hash = hashes.get(address)
    creations.set(address, hash === undefined ? UNKNOWN : await creationOf(provider, address, hash))
  }
  return creations
}

/**
 * The journal is only a hint: the receipt proves the address, and the signed transaction its sender, nonce and input.
 * The node must be trusted only that it was mined.
 */
async function creationOf(provider: Provider, address: string, hash: string): Promise<Creation | string> {
  try {
    const receipt = await provider.getTransactionReceipt(hash)
    const transaction = await provider.getTransaction(hash)
    if (receipt === null || transaction === null)
      return `unknown: the node does not return transaction ${hash}; use a node that serves the first block of the deployment`
    if (text(receipt.contractAddress) !== address || receipt.status !== 1)
      return `unknown: transaction ${hash} in journal.jsonl of the deployment created ${receipt.contractAddress ?? 'no contract'}`
    const block = await provider.getBlock(receipt.blockNumber)
    if (block === null) return `unknown: the node does not return block ${receipt.blockNumber}`
    if (block.hash !== receipt.blockHash)
      return `unknown: the receipt of transaction ${hash} is of block ${receipt.blockHash}, and block ${block.number} is ${block.hash}`
    const signed = signedContent(transaction)
    if (signed.hash !== hash || signed.from === null)
      return `unknown: the node returned transaction ${signed.hash} for ${hash}`
    const created = getCreateAddress({ from: signed.from, nonce: signed.nonce })
    if (signed.to !== null || text(created) !== address)
      return `unknown: transaction ${hash} of ${signed.from} creates ${signed.to === null ? created : 'no contract'}`
    return {
      hash,
      block: receipt.blockNumber,
      time: block.timestamp,
      sender: signed.from,
      input: signed.data,
    }
  } catch (error) {
    return `unknown: the node refused transaction ${hash}: ${(error as Error).message}`
  }
}

/** The transaction with the hash and the sender that its content and its signature have, whatever the node says of them. */
function signedContent(response: TransactionResponse): Transaction {
  const { type, to, nonce, gasLimit, data, value, chainId, signature, accessList } = response
  const content = { type, to, nonce, gasLimit, data, value, chainId, signature, accessList }
  const { gasPrice, maxFeePerGas, maxPriorityFeePerGas } = response
  return Transaction.from({
    ...content,
    ...(type === 2 ? { maxFeePerGas, maxPriorityFeePerGas } : { gasPrice }),
  })
}

/** The first block of the contracts whose creation is known; null if none is. */
export function firstBlockOf(creations: Creations): number | null {
  const blocks = [...creations.values()].flatMap((each) => (typeof each === 'string' ? [] : [each.block]))
  return blocks.length === 0 ? null : Math.min(...blocks)
}
