/** Starts a second instance of processes on the database and chain of a running stack. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { environmentOf } from '../../../stack/environment.ts'
import { freePort, internalPorts } from '../../../stack/ports.ts'
import type { Adapt, ProcessSpec } from '../../../stack/process-spec.ts'
import type { Stack } from '../../../stack/stack.ts'
import { createSupervisor, type Managed } from '../../../stack/supervisor.ts'
import { preconfirmed, startRpcProxy } from '../../support/rpc-proxy.ts'

export interface SecondInstance {
  readonly baseUrl: string
  readonly keeper: Managed
  readonly indexer: Managed
  readonly api: Managed
  stop(): Promise<void>
}

/**
 * A second api, keeper and indexer. `logDir` stays; without it the logs are deleted at the end. The keeper's node responds to a send before the
 * transaction is in a block. `adapt` changes each process before it starts.
 */
export async function startSecondInstance(
  stack: Stack,
  logDir?: string,
  adapt: Adapt = (spec) => spec,
): Promise<SecondInstance> {
  const { indexer, keeper, api, baseUrl } = await secondEnvironment(stack)
  const node = await startRpcProxy(stack.chain.url, preconfirmed)
  const specs = [indexer, { ...keeper, env: { ...keeper.env, RPC_URL: node.url } }, api]
  const { processes, stop } = await start(await Promise.all(specs.map(adapt)), logDir)
  const [secondIndexer, secondKeeper, secondApi] = processes as [Managed, Managed, Managed]
  return {
    ...{ baseUrl, keeper: secondKeeper, indexer: secondIndexer, api: secondApi },
    async stop() {
      await stop()
      await node.close()
    },
  }
}

/** A keeper that owns each lease which the stack's keeper does not. Returns what ends it. */
export async function startSecondKeeper(stack: Stack): Promise<() => Promise<void>> {
  return (await start([(await secondEnvironment(stack)).keeper])).stop
}

async function secondEnvironment({ file, keys, databaseUrls, chain, pricesFile, engineAccess }: Stack) {
  const { usdm, margin_bank, account_manager, forwarder } = file.contracts
  const contracts = { usdm, marginBank: margin_bank, accountManager: account_manager, forwarder }
  return environmentOf({
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
    pageDir: null,
    engine: engineAccess,
  })
}

async function start(specs: readonly ProcessSpec[], ownLogDir?: string) {
  const logDir = ownLogDir ?? mkdtempSync(join(tmpdir(), 'clearbatch-second-instance-'))
  const supervisor = createSupervisor({ logDir, report: () => {} })
  const processes = specs.map(supervisor.start)
  await Promise.all(processes.map((process) => process.ready()))
  const stop = async (): Promise<void> => {
    await supervisor.stop()
    if (ownLogDir === undefined) rmSync(logDir, { recursive: true, force: true })
  }
  return { processes, stop }
}
