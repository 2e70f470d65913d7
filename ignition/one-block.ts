/** Reads of the state of one block. */
import type { Provider, TransactionRequest } from 'ethers'

/**
 * The provider, with all reads of state at its present latest block: a check and the calls that follow from it see the same chain. Transactions, receipts
 * and logs are read as they are.
 */
export async function atOneBlock(provider: Provider): Promise<Provider> {
  const number = await provider.getBlockNumber()
  const reads: Partial<Provider> = {
    call: (request: TransactionRequest) => provider.call({ ...request, blockTag: number }),
    getCode: (address) => provider.getCode(address, number),
    getBlock: (tag) => provider.getBlock(tag === 'latest' ? number : tag),
  }
  return new Proxy(provider, {
    get(target, name) {
      if (name in reads) return reads[name as keyof Provider]
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
