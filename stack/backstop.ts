/** The backstop of the local stack: it backs every market up to its cap, and a session key of its account closes what it has inherited. */
import { type ContractTransactionResponse, type JsonRpcProvider, NonceManager, Wallet } from 'ethers'
import { createApiKey } from '../api/auth/credentials.ts'
import type { Db } from '../db/client.ts'
import { AccountManager__factory } from '../typechain-types/factories/AccountManager__factory.ts'
import { Backstop__factory } from '../typechain-types/factories/Backstop__factory.ts'
import { IsolatedTrader__factory } from '../typechain-types/factories/IsolatedTrader__factory.ts'
import { type Funding, fund, userOf } from './accounts.ts'
import type { SharedContracts } from './deploy.ts'
import type { Deployment } from './deployment.ts'
import type { Key, Keys } from './keys.ts'
import { SEED_MARKETS } from './seed-markets.ts'
import type { StackAccount } from './stack-file.ts'

/** Bit of the permission to sign orders. */
const ORDERS = 1
/** A key that ends within a week is replaced at the next start. */
const KEY_LIFE_S = 23 * 86_400

/** A state of an earlier version has no backstop. Returns the session key that signs its orders. */
export async function ensureBackstop(
  keys: Keys,
  provider: JsonRpcProvider,
  { contracts, traders }: Deployment,
): Promise<Key> {
  const signer = new NonceManager(new Wallet(keys.deployer.privateKey, provider))
  const backstop = Backstop__factory.connect(contracts.backstop, signer)
  const markets = SEED_MARKETS.map(({ plan, backstopCap: cap }) => ({
    ...{ cap, trader: IsolatedTrader__factory.connect(traders[plan.marketId] as string, signer) },
  }))
  const terms = await Promise.all(markets.map(({ trader }) => trader.riskTerms()))
  const missing = markets.filter(
    ({ cap }, at) =>
      terms[at]?.backstop.toLowerCase() !== contracts.backstop || terms[at]?.backstopCap !== cap,
  )
  // A market accepts only a backstop that has agreed.
  await mined(missing.map(({ trader }) => backstop.setBacked(trader, true)))
  await mined(missing.map(({ trader, cap }) => trader.setBackstop(contracts.backstop, cap)))
  const { key, isRegistered } = await currentKey(keys, provider, contracts)
  if (!isRegistered) await (await backstop.registerSessionKey(key.address, ORDERS)).wait()
  return key
}

async function mined(sent: readonly Promise<ContractTransactionResponse>[]): Promise<void> {
  await Promise.all((await Promise.all(sent)).map((transaction) => transaction.wait()))
}

const FUNDS = { wallet: 0n, deposit: 10_000_000n * 10n ** 18n } as const

/**
 * Its capital, and access to the REST interface. Its contract signs nothing (no EIP-1271), so it cannot sign in: the owner of the database
 * creates its key.
 */
export async function fundBackstop(
  db: Db,
  funding: Funding,
  { backstop: address }: SharedContracts,
  { privateKey }: Key,
): Promise<StackAccount> {
  await fund(funding, [{ address, privateKey }], FUNDS)
  const user_id = await userOf(db, address)
  return { address, private_key: privateKey, user_id, api_key: await createApiKey(db, user_id) }
}

/** A key can be registered once: it expires 30 days later for good. */
async function currentKey(
  keys: Keys,
  provider: JsonRpcProvider,
  { accountManager, backstop }: SharedContracts,
): Promise<{ readonly key: Key; readonly isRegistered: boolean }> {
  const manager = AccountManager__factory.connect(accountManager, provider)
  const now = (await provider.getBlock('latest'))?.timestamp ?? 0
  for (let number = 0; ; number++) {
    const key = keys.backstop(number)
    const { registeredAt, revokedAt } = await manager.sessionKey(backstop, key.address)
    if (registeredAt === 0n) return { key, isRegistered: false }
    if (revokedAt === 0n && now < Number(registeredAt) + KEY_LIFE_S) return { key, isRegistered: true }
  }
}
