// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IMarginBank} from "../../../contracts/interfaces/IMarginBank.sol";
import {PauseHandler} from "./PauseHandler.sol";
import {deploy, holds, same, vm} from "./Vm.sol";

/// @title Laws of a bank's pauses and of the wei that signals them, with ether forced on either contract
contract PauseInvariants {
    PauseHandler internal handler;

    function setUp() public {
        vm.deal(address(this), 1 ether);
        handler = PauseHandler(deploy("PauseHandler", "", 1 ether));
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    /// @notice If a pause is active, the bank has ether; bank and latch together have all ether that they ever received.
    function invariant_pause() public view {
        IMarginBank bank = handler.bank();
        uint256 held = address(bank).balance;
        holds("an active pause has a wei", held != 0 || !handler.isRunning());
        same("no wei is lost", int256(handler.given()), int256(held + address(handler.latch()).balance));

        IMarginBank.Pause memory last = bank.lastPause();
        same("paused as expected", handler.isRunning(), bank.isPaused());
        same("the last pause began", int256(handler.startedAt()), int256(uint256(last.startedAt)));
        same("the last pause ends", int256(handler.endsAt()), int256(uint256(last.endsAt)));
    }
}
