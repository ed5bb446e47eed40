package memfs

// Wipe overwrites every file that has a name with zeros (inputs, workspace and what was offered) and forgets the tree.
// What has no name any more and is still open cannot be found; Left counts it.
func (f *FS) Wipe() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.visit(func(n *node, top string) {
		switch {
		case top == Work:
			f.files--
			f.bytes -= int64(len(n.data))
		case top == Inputs && !n.dir:
			f.inFiles--
			f.inBytes -= int64(len(n.data))
		}
		clear(n.data[:cap(n.data)])
		n.data = nil
	})
	f.offers = offers{}
	f.root.children = map[string]*node{Inputs: f.newNode(true, true), Work: f.newNode(true, false)}
}

// Left counts files and directories, and their bytes, besides the two folders of the root: by looking at the tree, and by
// what was counted while it was filled. The larger numbers count, and whatever a guest still has open.
func (f *FS) Left() (files, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.visit(func(n *node, _ string) {
		files++
		bytes += int64(len(n.data))
	})
	return max(files, f.files+f.inFiles) + f.open, max(bytes, f.bytes+f.inBytes)
}

// visit calls seen for everything below the folders of the root, with the name of that folder.
func (f *FS) visit(seen func(n *node, top string)) {
	var walk func(n *node, top string)
	walk = func(n *node, top string) {
		for _, c := range n.children {
			walk(c, top)
			seen(c, top)
		}
	}
	for top, n := range f.root.children {
		walk(n, top)
	}
}
