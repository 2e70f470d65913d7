// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {TestUSDM} from "../../../contracts/TestUSDM.sol";
import {IMarginBank} from "../../../contracts/interfaces/IMarginBank.sol";
import {PauseLatch} from "../../../contracts/PauseLatch.sol";
import {deploy, holds, same, vm, within} from "./Vm.sol";

/// @title A bank whose guardian pauses whenever he may, an owner who pays in and out, and strangers with ether
contract PauseHandler {
    uint256 private constant WITHDRAWAL_SECONDS = 16;
    uint256 private constant UNIT = 1e18;
    address private constant STRANGER = address(0x5712A6E2);

    TestUSDM public immutable token;
    IMarginBank public immutable bank;
    PauseLatch public immutable latch;

    /// @notice Unix seconds, as the guardian remembers them.
    uint256 public startedAt;
    uint256 public endsAt;
    /// @notice Wei that bank and latch were ever given, wanted or not.
    uint256 public given = 1;

    constructor() payable {
        vm.warp(1_900_000_000);
        token = TestUSDM(deploy("TestUSDM", ""));
        address access = deploy("ExchangeAccess", abi.encode(address(this), 0));
        bank = IMarginBank(deploy("MarginBank", abi.encode(token, access, address(this), 0), 1));
        latch = PauseLatch(payable(bank.pauseLatch()));
        token.approve(address(bank), type(uint256).max);
    }

    function isRunning() public view returns (bool) {
        return block.timestamp < endsAt;
    }

    // ------------------------------------------------------------------ steps

    /// @notice Seconds, days, or to the very second at which a pause ends or may begin.
    function pass(uint256 seed) external {
        uint256 to = block.timestamp + within(seed >> 8, 0, seed & 1 == 0 ? 60 : 5 days);
        if (seed % 5 == 0 && isRunning()) to = endsAt - ((seed >> 8) & 1);
        if (seed % 5 == 1 && startedAt != 0) to = startedAt + 30 days - ((seed >> 8) & 1);
        if (to > block.timestamp) vm.warp(to);
    }

    function pause() external {
        bool due = startedAt == 0 || block.timestamp >= startedAt + 30 days;
        same("pause, once in thirty days", due, _sent(address(this), address(bank), abi.encodeCall(bank.pause, ())));
        if (!due) return;
        startedAt = block.timestamp;
        endsAt = startedAt + 3 days;
    }

    function unpause() external {
        bool running = isRunning();
        same("unpause what runs", running, _sent(address(this), address(bank), abi.encodeCall(bank.unpause, ())));
        if (!running) return;
        endsAt = block.timestamp;
        same("unpause gives all back", 0, int256(address(bank).balance));
    }

    function restoreLatch() external {
        bool due = !isRunning() && address(bank).balance != 0;
        same("restoreLatch what is over", due, _sent(STRANGER, address(bank), abi.encodeCall(bank.restoreLatch, ())));
        if (due) same("restoreLatch gives all back", 0, int256(address(bank).balance));
    }

    /// @notice Ether from a contract that goes up in its constructor: nobody is asked.
    function force(uint256 seed) external {
        address to = seed & 1 == 0 ? address(bank) : address(latch);
        bytes memory code = abi.encodePacked(hex"73", to, hex"ff");
        uint256 amount = within(seed >> 1, 1, 1e9);
        assembly ("memory-safe") {
            pop(create(amount, add(code, 32), mload(code)))
        }
        given += amount;
    }

    /// @notice What no stranger may do.
    function trespass() external {
        holds("strangers pause nothing", !_sent(STRANGER, address(bank), abi.encodeCall(bank.pause, ())));
        holds("strangers unpause nothing", !_sent(STRANGER, address(bank), abi.encodeCall(bank.unpause, ())));
        holds("strangers release nothing", !_sent(STRANGER, address(latch), abi.encodeCall(latch.release, ())));
        (bool paid,) = address(bank).call{value: 1}("");
        (bool kept,) = address(latch).call{value: 1}("");
        holds("strangers pay neither", !paid && !kept);
    }

    // ------------------------------------------------------------------ payments

    function deposit() external {
        token.mint(address(this), UNIT);
        bytes memory call = abi.encodeCall(bank.deposit, (UNIT));
        same("deposits go through unless paused", !isRunning(), _sent(address(this), address(bank), call));
    }

    function withdraw() external {
        IMarginBank.Account memory entry = bank.account(address(this));
        if (entry.free != 0) bank.requestWithdrawal(entry.free);
        if (entry.free == 0 && entry.pending == 0) return;
        vm.warp(block.timestamp + WITHDRAWAL_SECONDS);
        bytes memory call = abi.encodeCall(bank.withdraw, ());
        same("payouts go through unless paused", !isRunning(), _sent(address(this), address(bank), call));
    }

    function _sent(address sender, address to, bytes memory data) private returns (bool done) {
        vm.prank(sender);
        (done,) = to.call(data);
    }
}
