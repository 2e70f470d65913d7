/** A wallet of the tests' own, announced to pages as EIP-6963 demands. It signs in this process, and lists what it was asked to sign. */
import {
  getBytes,
  JsonRpcProvider,
  NonceManager,
  type TypedDataDomain,
  type TypedDataField,
  toBeHex,
  Wallet,
} from 'ethers'
import type { BrowserContext, Page } from 'playwright-core'

interface Call {
  readonly method: string
  readonly params?: readonly unknown[]
}

interface TypedData {
  readonly domain: TypedDataDomain
  readonly types: Record<string, TypedDataField[]>
  readonly message: Record<string, unknown>
}

/** Runs in the page, before its own scripts. */
const ANNOUNCE = `(() => {
  const listeners = {}
  const provider = {
    request: async (call) => {
      const { result, error } = JSON.parse(await window.injectedWallet(JSON.stringify(call)))
      if (error) throw Object.assign(new Error(error.message), { code: error.code })
      return result
    },
    on: (event, listener) => { (listeners[event] ??= []).push(listener) },
  }
  window.emitWalletEvent = (event, value) => { for (const listener of listeners[event] ?? []) listener(value) }
  const info = { uuid: '00000000-0000-4000-8000-000000000001', name: 'Test wallet', icon: 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"/>', rdns: 'test.wallet' }
  const announce = () => window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }))
  window.addEventListener('eip6963:requestProvider', announce)
  announce()
})()`

export interface InjectedWallet {
  readonly address: string
  /** Methods that needed a confirmation of the user, oldest first. */
  readonly confirmed: readonly string[]
  emit(page: Page, event: string, value: unknown): Promise<void>
  close(): void
}

export async function injectWallet(
  context: BrowserContext,
  rpcUrl: string,
  key = Wallet.createRandom().privateKey,
): Promise<InjectedWallet> {
  const provider = new JsonRpcProvider(rpcUrl, undefined, { cacheTimeout: -1, pollingInterval: 250 })
  const wallet = new Wallet(key, provider)
  const sender = new NonceManager(wallet)
  const confirmed: string[] = []
  const answer = async ({ method, params = [] }: Call): Promise<unknown> => {
    const [first, second] = params as [never, never]
    if (method.startsWith('personal_') || method.startsWith('eth_s')) confirmed.push(method)
    switch (method) {
      case 'eth_requestAccounts':
      case 'eth_accounts':
        return [wallet.address]
      case 'eth_chainId':
        return toBeHex((await provider.getNetwork()).chainId)
      case 'personal_sign':
        return wallet.signMessage(getBytes(first))
      case 'eth_signTypedData_v4': {
        const { domain, types, message } = JSON.parse(second) as TypedData
        const { EIP712Domain: _, ...own } = types
        return wallet.signTypedData(domain, own, message)
      }
      case 'eth_sendTransaction': {
        const { to, data } = first as { to: string; data: string }
        return (await sender.sendTransaction({ to, data })).hash
      }
      default:
        return provider.send(method, [...params])
    }
  }
  await context.exposeFunction('injectedWallet', async (text: string) => {
    try {
      return JSON.stringify({ result: (await answer(JSON.parse(text) as Call)) ?? null })
    } catch (error) {
      const { message, code } = error as { message: string; code?: number }
      return JSON.stringify({ error: { message, code: typeof code === 'number' ? code : -32_000 } })
    }
  })
  await context.addInitScript(ANNOUNCE)
  return {
    address: wallet.address.toLowerCase(),
    confirmed,
    emit: async (page, event, value) => {
      await page.evaluate(`window.emitWalletEvent(${JSON.stringify(event)}, ${JSON.stringify(value)})`)
    },
    close: () => provider.destroy(),
  }
}
