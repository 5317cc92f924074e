# For habit's sake: every target is a script, and CMake with Ninja does the work.
.PHONY: build demo test check clean help
build: ; @scripts/build
demo:  ; @scripts/demo
test:  ; @scripts/test
check: ; @scripts/test --all
clean: ; rm -rf build
help:
	@echo "make        build the programs into build/release/bin   (scripts/build)"
	@echo "make demo   train Wide & Deep on generated clicks       (scripts/demo)"
	@echo "make test   build and run the tests                     (scripts/test)"
	@echo "make check  the same with sanitizers, fuzzing, lints    (scripts/test --all)"
	@echo "make clean  remove build/"
