/** Wallets that announce themselves to the page (EIP-6963), and the one that is connected. */
import { signal } from '@preact/signals'
import { end, session } from './session.ts'

export interface Eip1193Provider {
  request(call: { readonly method: string; readonly params?: readonly unknown[] }): Promise<unknown>
  on?(event: string, listener: (value: never) => void): void
}

export interface WalletInfo {
  readonly uuid: string
  readonly name: string
  /** A data URL. */
  readonly icon: string
  readonly rdns: string
}

export interface AnnouncedWallet {
  readonly info: WalletInfo
  readonly provider: Eip1193Provider
}

export interface ConnectedWallet extends AnnouncedWallet {
  /** Lower case. */
  readonly address: string
}

export const announced = signal<readonly AnnouncedWallet[]>([])
export const wallet = signal<ConnectedWallet | null>(null)

const LAST_KEY = 'clearbatch.wallet'

addEventListener('eip6963:announceProvider', (event) => {
  const { detail } = event as CustomEvent<AnnouncedWallet>
  if (announced.value.some(({ info }) => info.uuid === detail.info.uuid)) return
  announced.value = [...announced.value, detail]
})
dispatchEvent(new Event('eip6963:requestProvider'))

export const hexText = (text: string): string =>
  `0x${Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, '0')).join('')}`

const watched = new WeakSet<Eip1193Provider>()

function watch({ provider }: AnnouncedWallet): void {
  if (watched.has(provider) || provider.on === undefined) return
  watched.add(provider)
  provider.on('accountsChanged', (accounts: readonly string[]) => {
    const address = accounts[0]?.toLowerCase()
    if (wallet.value?.provider !== provider || address === wallet.value.address) return
    wallet.value = null
    if (session.value !== null && session.value.address !== address)
      void end('The account of your wallet has changed.')
  })
  provider.on('chainChanged', () => {
    if (wallet.value?.provider !== provider) return
    wallet.value = null
    if (session.value !== null) void end('The chain of your wallet has changed.')
  })
}

async function connectWith(each: AnnouncedWallet, method: string): Promise<ConnectedWallet | null> {
  const accounts = (await each.provider.request({ method })) as readonly string[]
  const address = accounts[0]?.toLowerCase()
  if (address === undefined) return null
  watch(each)
  const connected = { ...each, address }
  wallet.value = connected
  localStorage.setItem(LAST_KEY, each.info.rdns)
  return connected
}

/** Asks the wallet for its account. Throws with the wallet's words if the user refuses. */
export async function connect(each: AnnouncedWallet): Promise<ConnectedWallet> {
  const connected = await connectWith(each, 'eth_requestAccounts')
  if (connected === null) throw new Error('the wallet has no account')
  return connected
}

/** Connects the wallet of the last visit without a prompt, if it still has given this page its account. */
export async function reconnect(): Promise<void> {
  const last = localStorage.getItem(LAST_KEY)
  const known = announced.value.find(({ info }) => info.rdns === last)
  if (known !== undefined && wallet.value === null) await connectWith(known, 'eth_accounts').catch(() => null)
}

/** Returns the connected wallet of the signed-in account, connecting it if needed. */
export async function ownerWallet(): Promise<ConnectedWallet> {
  const owner = session.value?.address
  if (wallet.value === null) await reconnect()
  const [only] = announced.value
  if (wallet.value === null && only !== undefined && announced.value.length === 1) await connect(only)
  const connected = wallet.value
  if (connected === null) throw new Error('connect the wallet of the account first')
  if (connected.address !== owner)
    throw new Error(`the wallet shows ${connected.address}; switch it to ${owner}, the signed-in account`)
  return connected
}

const UNKNOWN_CHAIN = 4902

/** Wallets sign typed data only for the chain that they are on. */
export async function requireChain(
  { provider }: ConnectedWallet,
  chainId: number,
  rpcUrls: readonly string[],
): Promise<void> {
  const wanted = `0x${chainId.toString(16)}`
  if (BigInt((await provider.request({ method: 'eth_chainId' })) as string) === BigInt(chainId)) return
  try {
    await provider.request({ method: 'wallet_switchEthereumChain', params: [{ chainId: wanted }] })
  } catch (error) {
    if ((error as { code?: number }).code !== UNKNOWN_CHAIN || rpcUrls.length === 0) throw error
    const chain = {
      chainId: wanted,
      chainName: `Chain ${chainId}`,
      rpcUrls,
      nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    }
    await provider.request({ method: 'wallet_addEthereumChain', params: [chain] })
  }
}

export const signText = async ({ provider, address }: ConnectedWallet, text: string): Promise<string> =>
  (await provider.request({ method: 'personal_sign', params: [hexText(text), address] })) as string
