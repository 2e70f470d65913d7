/** Starts further api processes on the database and chain of a running stack. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { environmentOf } from '../../stack/environment.ts'
import { freePort, internalPorts } from '../../stack/ports.ts'
import type { Stack } from '../../stack/stack.ts'
import { createSupervisor, type Managed } from '../../stack/supervisor.ts'

export interface MoreApis {
  readonly ports: readonly number[]
  pids(): number[]
  stop(): Promise<void>
}

export async function startMoreApis(stack: Stack, count: number): Promise<MoreApis> {
  const logDir = mkdtempSync(join(tmpdir(), 'clearbatch-bench-apis-'))
  const supervisor = createSupervisor({ logDir, report: console.error })
  const started: { rest: number; api: Managed }[] = []
  for (let index = 0; index < count; index++) {
    const rest = await freePort()
    const api = supervisor.start((await environmentFor(stack, rest)).api)
    await api.ready()
    started.push({ rest, api })
  }
  return {
    ports: started.map(({ rest }) => rest),
    pids: () => started.map(({ api }) => api.pid() ?? 0),
    async stop() {
      await supervisor.stop()
      rmSync(logDir, { recursive: true, force: true })
    },
  }
}

async function environmentFor(
  { file, keys, databaseUrls, chain, pricesFile, engineAccess }: Stack,
  rest: number,
) {
  const { usdm, margin_bank, account_manager, forwarder } = file.contracts
  const contracts = { usdm, marginBank: margin_bank, accountManager: account_manager, forwarder }
  const issuer = Number(new URL(file.issuer_url).port)
  return environmentOf({
    databaseUrls,
    rpcUrl: chain.url,
    keys,
    pricesFile,
    issuerKeysFile: '',
    pageDir: null,
    engine: engineAccess,
    deployment: { chain_id: file.chain_id, contracts },
    ports: { rest, issuer, internal: await internalPorts() },
  })
}
