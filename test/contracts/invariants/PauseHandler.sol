// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {TestUSDM} from "../../../contracts/TestUSDM.sol";
import {IMarginBank} from "../../../contracts/interfaces/IMarginBank.sol";
import {PauseLatch} from "../../../contracts/PauseLatch.sol";
import {deploy, holds, same, vm, within} from "./Vm.sol";

/// @title A bank with a guardian that pauses whenever possible, an owner with deposits, and unauthorized callers with ether
contract PauseHandler {
    uint256 private constant WITHDRAWAL_SECONDS = 16;
    uint256 private constant UNIT = 1e18;
    address private constant UNAUTHORIZED = address(0x5712A6E2);

    TestUSDM public immutable token;
    IMarginBank public immutable bank;
    PauseLatch public immutable latch;

    /// @notice Times of the last pause as expected by the guardian, in Unix seconds.
    uint256 public startedAt;
    uint256 public endsAt;
    /// @notice Wei that bank and latch ever received, forced or not.
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

    /// @notice Advances by seconds or days, or to the second at which a pause ends or may begin.
    function pass(uint256 seed) external {
        uint256 to = block.timestamp + within(seed >> 8, 0, seed & 1 == 0 ? 60 : 5 days);
        if (seed % 5 == 0 && isRunning()) to = endsAt - ((seed >> 8) & 1);
        if (seed % 5 == 1 && startedAt != 0) to = startedAt + 30 days - ((seed >> 8) & 1);
        if (to > block.timestamp) vm.warp(to);
    }

    function pause() external {
        bool due = startedAt == 0 || block.timestamp >= startedAt + 30 days;
        same("pause once in thirty days", due, _sent(address(this), address(bank), abi.encodeCall(bank.pause, ())));
        if (!due) return;
        startedAt = block.timestamp;
        endsAt = startedAt + 3 days;
    }

    function unpause() external {
        bool running = isRunning();
        same("unpause only while paused", running, _sent(address(this), address(bank), abi.encodeCall(bank.unpause, ())));
        if (!running) return;
        endsAt = block.timestamp;
        same("unpause moves all ether", 0, int256(address(bank).balance));
    }

    function restoreLatch() external {
        bool due = !isRunning() && address(bank).balance != 0;
        same("restoreLatch only after a pause", due, _sent(UNAUTHORIZED, address(bank), abi.encodeCall(bank.restoreLatch, ())));
        if (due) same("restoreLatch moves all ether", 0, int256(address(bank).balance));
    }

    /// @notice Forces ether on a contract: a contract that self-destructs in its constructor.
    function force(uint256 seed) external {
        address to = seed & 1 == 0 ? address(bank) : address(latch);
        bytes memory code = abi.encodePacked(hex"73", to, hex"ff");
        uint256 amount = within(seed >> 1, 1, 1e9);
        assembly ("memory-safe") {
            pop(create(amount, add(code, 32), mload(code)))
        }
        given += amount;
    }

    /// @notice Calls that an unauthorized account may not make.
    function attemptUnauthorized() external {
        holds("unauthorized pause reverts", !_sent(UNAUTHORIZED, address(bank), abi.encodeCall(bank.pause, ())));
        holds("unauthorized unpause reverts", !_sent(UNAUTHORIZED, address(bank), abi.encodeCall(bank.unpause, ())));
        holds("unauthorized release reverts", !_sent(UNAUTHORIZED, address(latch), abi.encodeCall(latch.release, ())));
        (bool paid,) = address(bank).call{value: 1}("");
        (bool kept,) = address(latch).call{value: 1}("");
        holds("unsolicited ether reverts", !paid && !kept);
    }

    // ------------------------------------------------------------------ payments

    function deposit() external {
        token.mint(address(this), UNIT);
        bytes memory call = abi.encodeCall(bank.deposit, (UNIT));
        same("deposits succeed unless paused", !isRunning(), _sent(address(this), address(bank), call));
    }

    function withdraw() external {
        IMarginBank.Account memory entry = bank.account(address(this));
        if (entry.free != 0) bank.requestWithdrawal(entry.free);
        if (entry.free == 0 && entry.pending == 0) return;
        vm.warp(block.timestamp + WITHDRAWAL_SECONDS);
        bytes memory call = abi.encodeCall(bank.withdraw, ());
        same("payouts succeed unless paused", !isRunning(), _sent(address(this), address(bank), call));
    }

    function _sent(address sender, address to, bytes memory data) private returns (bool done) {
        vm.prank(sender);
        (done,) = to.call(data);
    }
}
