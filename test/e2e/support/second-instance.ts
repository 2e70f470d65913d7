/**
 * Starts a second api, keeper and indexer on the database and chain of a running stack. The keeper's node responds to a send before the
 * transaction is in a block.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { environmentOf } from '../../../stack/environment.ts'
import { freePort, internalPorts } from '../../../stack/ports.ts'
import type { Stack } from '../../../stack/stack.ts'
import { createSupervisor } from '../../../stack/supervisor.ts'
import { preconfirmed, startRpcProxy } from '../../support/rpc-proxy.ts'

export interface SecondInstance {
  readonly baseUrl: string
  stop(): Promise<void>
}

export async function startSecondInstance({
  file,
  keys,
  databaseUrls,
  chain,
  pricesFile,
}: Stack): Promise<SecondInstance> {
  const { usdm, margin_bank, account_manager, forwarder } = file.contracts
  const contracts = { usdm, marginBank: margin_bank, accountManager: account_manager, forwarder }
  const environment = environmentOf({
    databaseUrls,
    rpcUrl: chain.url,
    deployment: { chain_id: file.chain_id, contracts },
    keys,
    ports: {
      rest: await freePort(),
      issuer: Number(new URL(file.issuer_url).port),
      internal: await internalPorts(),
    },
    pricesFile,
    issuerKeysFile: '',
  })
  const logDir = mkdtempSync(join(tmpdir(), 'clearbatch-second-instance-'))
  const supervisor = createSupervisor({ logDir, report: () => {} })
  const node = await startRpcProxy(chain.url, preconfirmed)
  const keeper = { ...environment.keeper, env: { ...environment.keeper.env, RPC_URL: node.url } }
  const started = [environment.indexer, keeper, environment.api].map(supervisor.start)
  await Promise.all(started.map((process) => process.ready()))
  return {
    baseUrl: environment.baseUrl,
    async stop() {
      await supervisor.stop()
      await node.close()
      rmSync(logDir, { recursive: true, force: true })
    },
  }
}
