/** Collateral by transactions of the owner's wallet, through the wallet's own node. */
import { Bank } from '../../client/bank.ts'
import { providerSigner } from '../../client/signers/adapters.ts'
import { config } from '../base/config.ts'
import { fetchOf, NO_URL } from '../base/json-rpc.ts'
import { marketData } from '../feed/exchange.ts'
import { requireTrader } from './trader.ts'
import { ownerWallet, requireChain } from './wallet.ts'

/** Throws if the wallet is not that of the account, or refuses the exchange's chain. */
export async function ownBank(): Promise<Bank> {
  const wallet = await ownerWallet()
  const { chain_id } = await marketData.contracts()
  await requireChain(wallet, chain_id, config.rpcUrls)
  const { http, account } = requireTrader()
  const { provider, address } = wallet
  return new Bank({
    http,
    account,
    marketData,
    signer: providerSigner(provider, address),
    rpcUrl: NO_URL,
    fetch: fetchOf((method, params) => provider.request({ method, params })),
  })
}
