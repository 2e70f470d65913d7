/** Runs the identity provider of the local stack. Its sessions and codes are in memory, its keys in the data directory. */
import { createServer } from 'node:http'
import { environment } from '../../service/environment.ts'
import { addInteraction } from './interaction.ts'
import { loadIssuerKeys } from './keys.ts'
import { createProvider } from './provider.ts'
import { createWalletSignIn } from './wallet-sign-in.ts'

const { http, text, count } = environment(process.env, 'issuer')
const issuerUrl = http('ISSUER_URL')
const urls = { issuerUrl, pageUrl: http('PAGE_URL') }
const provider = createProvider(urls, await loadIssuerKeys(text('ISSUER_KEYS_FILE')))
const rpcUrl = http('RPC_URL')
addInteraction(provider, await createWalletSignIn({ issuerUrl, chainId: count('CHAIN_ID'), rpcUrl }))

const server = createServer(provider.callback())
const { hostname, port } = new URL(issuerUrl)
server.listen(Number(port), hostname)
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0))
