import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import toolbox from '@nomicfoundation/hardhat-toolbox-mocha-ethers'
import { defineConfig } from 'hardhat/config'
import { definePlugin } from 'hardhat/plugins'

/** Generated types name the contracts in the order of these paths, which is the file system's: make it one and the same. */
const sortedTypes = definePlugin({
  id: 'sorted-types',
  hookHandlers: {
    solidity: async () => ({
      default: async () => ({
        processArtifactsAfterSuccessfulBuild: async (_context, artifactPaths) => {
          ;(artifactPaths as string[]).sort()
        },
      }),
    }),
  },
})

const COMPILER = {
  version: '0.8.36',
  // An npm package, so that a build downloads nothing.
  path: fileURLToPath(import.meta.resolve('solc/soljson.js')),
}

/** A step of a run that is refused says why; a revert is a fault. */
const INVARIANT = { failOnRevert: true, shrinkRunLimit: 200 }

export default defineConfig({
  plugins: [sortedTypes, toolbox],
  solidity: {
    compilers: [
      {
        ...COMPILER,
        // More runs make IsolatedTrader larger than the chain takes, and settlement hardly cheaper.
        settings: { viaIR: true, optimizer: { enabled: true, runs: 400 }, evmVersion: 'prague' },
      },
    ],
    // Tests in Solidity take the contracts from the build; they themselves are compiled often and plainly.
    overrides: Object.fromEntries(
      globSync('test/contracts/**/*.sol').map((path) => [
        path,
        { ...COMPILER, settings: { optimizer: { enabled: true, runs: 1 }, evmVersion: 'prague' } },
      ]),
    ),
  },
  networks: {
    default: { type: 'edr-simulated', chainId: 6343, hardfork: 'prague', blockGasLimit: 1_000_000_000 },
  },
  paths: {
    tests: { mocha: './test/contracts', solidity: './test/contracts' },
  },
  typechain: { outDir: fileURLToPath(new URL('typechain-types', import.meta.url)), tsNocheck: true },
  test: {
    mocha: { timeout: 60_000 },
    solidity: {
      profiles: {
        default: { fuzz: { runs: 200 }, invariant: { ...INVARIANT, runs: 10, depth: 50 } },
        deep: { fuzz: { runs: 50_000, seed: '0x5eed' }, invariant: { ...INVARIANT, runs: 500, depth: 200 } },
      },
    },
  },
})
