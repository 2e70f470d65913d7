// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice The cheat codes of Hardhat's Solidity runner that these tests use.
interface Vm {
    function getCode(string calldata artifact) external view returns (bytes memory creationCode);
    function addr(uint256 privateKey) external pure returns (address);
    function warp(uint256 timestamp) external;
    function prank(address sender) external;
    function deal(address account, uint256 balance) external;
    function load(address target, bytes32 slot) external view returns (bytes32 data);
}

Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

/// @dev Order of secp256k1, and the first coordinate of its generator, whose second one is even.
uint256 constant CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;
uint256 constant GENERATOR_X = 0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798;

/// @notice A valid signature with low s, without the cost of `vm.sign`, which takes longer than a contract call. Its nonce is 1,
/// so it discloses the key.
function sign(uint256 privateKey, bytes32 digest) pure returns (uint8 v, bytes32 r, bytes32 s) {
    uint256 value = addmod(uint256(digest), mulmod(GENERATOR_X, privateKey, CURVE_ORDER), CURVE_ORDER);
    bool isHigh = value > CURVE_ORDER / 2;
    return (isHigh ? 28 : 27, bytes32(GENERATOR_X), bytes32(isHigh ? CURVE_ORDER - value : value));
}

/// @notice A law that does not hold.
error Broken(string invariant, int256 expected, int256 found);

function same(string memory invariant, int256 expected, int256 found) pure {
    if (expected != found) revert Broken(invariant, expected, found);
}

function same(string memory invariant, bool expected, bool found) pure {
    same(invariant, expected ? int256(1) : int256(0), found ? int256(1) : int256(0));
}

function holds(string memory invariant, bool condition) pure {
    if (!condition) revert Broken(invariant, 1, 0);
}

/// @notice Maps `value` into lowest..highest, both inclusive.
function within(uint256 value, uint256 lowest, uint256 highest) pure returns (uint256) {
    return lowest + (value % (highest - lowest + 1));
}

/// @dev Deploys the build's own artifact, so that nothing is compiled twice.
function deploy(string memory name, bytes memory arguments) returns (address created) {
    return deploy(name, arguments, 0);
}

/// @dev With `value` wei of the caller.
function deploy(string memory name, bytes memory arguments, uint256 value) returns (address created) {
    bytes memory code = bytes.concat(vm.getCode(name), arguments);
    assembly ("memory-safe") {
        created := create(value, add(code, 32), mload(code))
    }
    require(created != address(0), name);
}
