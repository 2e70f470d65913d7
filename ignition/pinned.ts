/** Reads of several values at one block, so that they describe one state of the chain. */
import type { Block, Provider, TransactionRequest } from 'ethers'

export interface Pinned {
  /** Answers every read of state as of the block, which is also its latest block. */
  readonly provider: Provider
  /** Throws if another block has replaced the block: the values read then may belong to two states. */
  readonly requireUnchanged: () => Promise<void>
}

/** Pins reads to the latest block. */
export async function pinned(provider: Provider): Promise<Pinned> {
  const head = await provider.getBlock('latest')
  if (head === null) throw new Error('the node has no latest block')
  return { provider: readingAt(provider, head), requireUnchanged: () => requireSame(provider, head) }
}

function readingAt(provider: Provider, { number }: Block): Provider {
  const reads = {
    call: (asked: TransactionRequest) => provider.call({ ...asked, blockTag: number }),
    getCode: (address: string) => provider.getCode(address, number),
    getBalance: (address: string) => provider.getBalance(address, number),
    getBlock: (tag: number | string) => provider.getBlock(tag === 'latest' ? number : tag),
  }
  return new Proxy(provider, {
    get(target, name) {
      if (name in reads) return reads[name as keyof typeof reads]
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

async function requireSame(provider: Provider, { number, hash }: Block): Promise<void> {
  const present = (await provider.getBlock(number))?.hash ?? 'unknown'
  if (present !== hash)
    throw new Error(
      `block ${number} was ${hash} at the start of the check and is ${present} now; run this again`,
    )
}
