/**
 * Restores the contract build and generated types after a coverage run, which compiles instrumented contracts, so that
 * no instrumented bytecode stays in the working tree.
 */
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { definePlugin } from 'hardhat/plugins'

const BUILD_OUTPUT = ['artifacts', 'cache', 'typechain-types']

/** Copies the build output of the project at `root`; the returned function puts it back. */
function saveBuildOutput(root: string): () => void {
  const copy = mkdtempSync(join(tmpdir(), 'coverage-'))
  const saved = BUILD_OUTPUT.filter((name) => existsSync(join(root, name)))
  for (const name of saved) cpSync(join(root, name), join(copy, name), { recursive: true })
  return () => {
    for (const name of BUILD_OUTPUT) rmSync(join(root, name), { recursive: true, force: true })
    for (const name of saved) cpSync(join(copy, name), join(root, name), { recursive: true })
    rmSync(copy, { recursive: true })
  }
}

export const coverageBuild = definePlugin({
  id: 'coverage-build',
  hookHandlers: {
    hre: async () => ({
      default: async () => ({
        created: async (context, hre) => {
          if (!context.globalOptions.coverage) return
          process.once('exit', saveBuildOutput(hre.config.paths.root))
          // A signal ends a process without an `exit` event unless it is handled.
          for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
        },
      }),
    }),
  },
})
